#!/usr/bin/env bash
# Runs the hostile programs of spec/attacks in the release build and in the sanitizer build: all, or those whose
# CLASS/NAME has one of the words. Ends with one line that adds both up. tools/test.sh sources it, and runs the classes
# beside the other suites.
#
#   tools/attacks.sh                 all
#   tools/attacks.sh gas/ forged     these
#   BUILDS=asan                      in this build only
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
. tools/tally.sh

attacks_build() { # BUILD
  cmake --preset "$1" >/dev/null && cmake --build --preset "$1" --target attacks >/dev/null
}

# attacks_classes: prints the folders of programs.
attacks_classes() {
  find spec/attacks -mindepth 2 -maxdepth 2 -name '*.lua' -printf '%h\n' | sort -u | sed 's,.*/,,'
}

# attacks_run BUILD [WORD…]: runs the programs whose CLASS/NAME has one of the words. The runner has sanitizer options of its own.
attacks_run() {
  tally_script "attacks, $1 build${2:+, ${*:2}}" \
    env -u ASAN_OPTIONS "build/$1/spec/attacks/attacks" ${ATTACKS_JOBS:+-j "$ATTACKS_JOBS"} "${@:2}"
}

[ "${BASH_SOURCE[0]}" = "$0" ] || return 0

for build in ${BUILDS:-release asan}; do
  attacks_build "$build" || exit
  attacks_run "$build" "$@"
done
tally_end
