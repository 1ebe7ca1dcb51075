#!/usr/bin/env bash
# Runs the hostile programs of spec/attacks in the release build and in the sanitizer build: all, or those whose
# CLASS/NAME has one of the words. Ends with one line that adds both up.
#
#   tools/attacks.sh                 all
#   tools/attacks.sh gas/ forged     these
#   BUILDS=asan                      in this build only
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
. tools/tally.sh

unset ASAN_OPTIONS # the runner has its own

for build in ${BUILDS:-release asan}; do
  echo "== attacks, $build build"
  cmake --preset "$build" >/dev/null &&
    cmake --build --preset "$build" --target attacks >/dev/null || exit
  start=$EPOCHREALTIME
  tally_script "build/$build/spec/attacks/attacks" "$@"
  tally_time "$(tally_seconds "$start")" "attacks, $build build"
done
tally_end
