#!/usr/bin/env bash
# All that needs no cluster, on the sanitizer build: C units, specs of the Lua library and of the
# embedded API server, the tests of scripts, specs through the binary, the fault bench, the hostile
# programs (these on the release build, too). Ends with one line that adds them up.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
. tools/tally.sh

export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0
export MOONLOOP="$PWD/build/asan/moonloop"

TALLY_TIMES=$(mktemp -t moonloop-times.XXXXXX)
export TALLY_TIMES
trap 'rm -f "$TALLY_TIMES"' EXIT

# suite WHAT: a program of the C units, a file of specs through the binary, or a suite by its name.
suite() {
  case $1 in
    build/*) tally_program "$1" ;;
    spec/host/*) tally_busted "$1" "$1" ;;
    lua) tally_busted "specs of the Lua library" spec/lua ;;
    apiserver) tally_trusted "the embedded API server" spec/apiserver ;;
    scripts) tally_specs "moonloop test" "$MOONLOOP" test reconcilers examples spec/testing ;;
  esac
}

units=()
for program in build/asan/spec/unit/test_*; do
  [ -x "$program" ] && [ -f "$program" ] && units+=("$program")
done
# What takes long comes first, so that no processor is idle at the end.
tally_each suite apiserver scripts spec/host/*_spec.lua lua "${units[@]}"
echo "== faults"
tally_script tools/faults.sh
tally_script tools/attacks.sh
tally_slowest 10
tally_end
