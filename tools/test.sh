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

readonly apiserver_parts=5 # its specs run in so many processes

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
    apiserver/*) apiserver_part "${1#*/}" ;;
    scripts) tally_specs "moonloop test" "$MOONLOOP" test reconcilers examples spec/testing ;;
    *)
      echo "FAIL $1: no such suite"
      tally_add 0 1 0
      ;;
  esac
}

# apiserver_part NUMBER: every fifth file of them, from that number on.
apiserver_part() {
  local files
  mapfile -t files < <(printf '%s\n' cluster/spec/apiserver/*_spec.lua | sed -n "$1~${apiserver_parts}p")
  tally_trusted "the embedded API server, part $1" "${files[@]}"
}

# all_suites: their names.
all_suites() {
  local program build class
  printf 'apiserver/%s\n' $(seq "$apiserver_parts")
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

# The suites that take most CPU time come first, so that no processor is idle at the end; the rest is short. Among those that
# mostly wait (tally_waits), the order is that of their seconds.
longest=(
  F2 F48 F1 apiserver/{1..5} attacks/asan/gas build/asan/spec/unit/test_script_steady scripts F16 F34
  build/asan/spec/unit/test_script_bounds F15 F23 F17 F6 build/asan/spec/unit/test_operator_metering F21 attacks/asan/memory
  attacks/asan/thread F36 F27 attacks/asan/lib F8 attacks/release/gas F32 F3 F30 F12 F33 attacks/release/memory F18
  build/asan/spec/unit/test_script_deadline attacks/release/thread F41 F22 F47 build/asan/spec/unit/test_cluster_shard
  attacks/release/lib attacks/asan/result F14 F29 F11 build/asan/spec/unit/test_operator_webhook_pair F31 F9 F24
  spec/host/{webhooks,hostile_http,connection}_spec.lua F10 spec/host/{dev,dev_network,dev_egress,secrets}_spec.lua F37
  build/asan/spec/unit/test_net_http_server_limits spec/host/{dev_containers,crash_marker,dev_proxy,dev_turns,alerts}_spec.lua
)
# These mostly wait for their own clocks, for processes or for a peer. Two of them run beside the others.
tally_waits() {
  case $1 in
    spec/host/* | F10 | F37 | */test_net_http_server* | */test_operator_watchdog | */test_cluster_process*) ;;
    *) false ;;
  esac
}
export TALLY_SLOTS=$(($(nproc) + 1)) TALLY_WAITING_SLOTS=2

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
