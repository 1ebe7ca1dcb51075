#!/usr/bin/env bash
# The script layer with a full collection at every new object and Lua itself instrumented: what C holds
# that the collector may take is found by the address sanitizer. Without what measures deadlines.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
. tools/tally.sh

export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0
export MOONLOOP="$PWD/build/stress/moonloop"
export TALLY_SECONDS=${TALLY_SECONDS:-1800} # a busy machine is no failure here

units=(ctx ctx_write json lazy library load pattern run)
tally_each tally_program "${units[@]/#/build/stress/spec/unit/test_script_}"
tally_specs "moonloop test" "$MOONLOOP" test reconcilers examples
tally_end
