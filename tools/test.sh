#!/usr/bin/env bash
# All that needs no cluster, on the sanitizer build: C units, specs of the Lua library and of the
# embedded API server, the tests of scripts, specs through the binary, the fault bench, the hostile
# programs (these on the release build, too). Ends with one line that adds them up.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
. tools/tally.sh

export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0
export MOONLOOP="$PWD/build/asan/moonloop"

suite() {
  case $1 in
    lua) tally_busted "specs of the Lua library" spec/lua ;;
    binary) tally_busted "specs through the binary" spec/host ;;
    apiserver) tally_trusted "the embedded API server" spec/apiserver ;;
    scripts) tally_specs "moonloop test" "$MOONLOOP" test reconcilers examples spec/testing ;;
  esac
}

tally_units build/asan/spec/unit
tally_each suite binary apiserver scripts lua
echo "== faults"
tally_script tools/faults.sh
tally_script tools/attacks.sh
tally_end
