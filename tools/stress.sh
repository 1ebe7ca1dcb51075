#!/usr/bin/env bash
# Runs the script layer with a full collection at every new object, and with Lua itself under the address sanitizer. This
# finds C code that holds an object which the collector may free. Tests that measure deadlines are left out.
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
