#!/usr/bin/env bash
# Runs all tests that need no cluster, on the sanitizer build: C units, specs of the Lua library and of the embedded API
# server, the tests of scripts, specs through the binary, the fault bench, the hostile programs (these on the release
# build, too). They run in one pool, over all processors. The script ends with one line that adds them up, and above it
# names the suites that failed.
#
#   tools/test.sh                    all
#   tools/test.sh F23 apiserver      these suites, by the names that such a line gives them
#
# tools/test-part.sh builds and runs one file of tests.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
. tools/tally.sh
. tools/faults.sh
. tools/attacks.sh

scratch=$(mktemp -d -t moonloop-test.XXXXXX)
trap 'rm -rf "$scratch"' EXIT
export TALLY_TIMES=$scratch/times
: >"$TALLY_TIMES"
export ATTACKS_JOBS=1

# suite NAME: a program of the C units, a file of tests, a row of the fault matrix, a class of hostile programs or one of
# them in one build, or one of the names below.
suite() {
  case $1 in
    build/*) tally_program "$1" ;;
    spec/host/*) tally_busted "$1" "$1" ;;
    cluster/spec/apiserver/* | spec/lua/*) tally_trusted "$1" "$1" ;;
    *_test.lua) tally_specs "$1" "$MOONLOOP" test "$1" ;;
    F*) faults_run "$1" ;;
    attacks/*/*/*) attacks_run "$(cut -d/ -f2 <<<"$1")" "$(cut -d/ -f3- <<<"$1")" ;;
    attacks/*/*) attacks_run "$(cut -d/ -f2 <<<"$1")" "$(cut -d/ -f3 <<<"$1")/" ;;
    cel-spec) HOSTLUA=build/asan/cluster/spec/hostlua/hostlua tally_script "$1" cluster/spec/conformance/run.sh "$1" ;;
    lua) tally_trusted "specs of the Lua library" spec/lua ;;
    apiserver) tally_trusted "the embedded API server" cluster/spec/apiserver ;;
    scripts) tally_specs "moonloop test" "$MOONLOOP" test reconcilers examples spec/testing ;;
    *)
      echo "FAIL $1: no such suite"
      tally_add 0 1 0
      ;;
  esac
}

# all_suites: their names.
all_suites() {
  local program build class
  echo apiserver
  for class in $(attacks_classes); do
    for build in asan release; do
      echo "attacks/$build/$class"
    done
  done
  faults_rows
  printf '%s\n' spec/host/*_spec.lua scripts lua
  for program in build/asan/spec/unit/test_*; do
    [ -x "$program" ] && [ -f "$program" ] && echo "$program"
  done
}

# The suites that take longest come first, so that no processor is idle at the end. Some between them mostly wait for their
# own clocks: F10, F8, hostile_http, connection.
longest=(
  apiserver attacks/asan/gas spec/host/hostile_http_spec.lua F23 F16 F6 F10 F32 F48
  attacks/asan/thread F2 build/asan/spec/unit/test_operator_metering build/asan/spec/unit/test_script_bounds build/asan/spec/unit/test_script_steady
  spec/host/connection_spec.lua attacks/asan/memory F21 F15 F27 F1 F17 attacks/asan/lib F8 F36 attacks/release/gas
  build/asan/spec/unit/test_net_http_server_limits spec/host/secrets_spec.lua spec/host/dev_spec.lua F34 F33 F3 F37
)
export TALLY_SLOTS=$(($(nproc) + 2)) # some of them sleep

suites=("$@")
[ $# -gt 0 ] || mapfile -t suites < <({ printf '%s\n' "${longest[@]}" | grep -Fx -f <(all_suites); all_suites; } | awk '!seen[$0]++')
for build in release asan; do
  [[ " ${suites[*]}" != *" attacks/$build/"* ]] || attacks_build "$build" || exit
done
faults_begin "$scratch/faults"
tally_each suite "${suites[@]}"
mapfile -t rows < <(printf '%s\n' "${suites[@]}" | grep '^F')
[ ${#rows[@]} = 0 ] || faults_end "${rows[@]}"
tally_slowest 10
[ ${#tally_failed[@]} = 0 ] || echo "failed suites: ${tally_failed[*]}"
tally_end
