#!/usr/bin/env bash
# Checks form, static analysis and the direction of dependencies, all at once. Prints all findings, and then fails.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
scratch=$(mktemp -d -t moonloop-lint.XXXXXX)
trap 'rm -rf "$scratch"' EXIT
titles=()

check() { # TITLE COMMAND…: starts it
  local number=${#titles[@]}
  titles+=("$1")
  shift
  { "$@" && touch "$scratch/$number.ok"; } >"$scratch/$number" 2>&1 &
}

verdicts() { # fails when a check has
  local number bad=0
  wait
  for number in "${!titles[@]}"; do
    if [ -e "$scratch/$number.ok" ]; then
      echo "ok   ${titles[number]}"
    else
      echo "FAIL ${titles[number]}"
      cat "$scratch/$number"
      bad=1
    fi
  done
  return "$bad"
}

mapfile -t c_files < <(git ls-files '*.c' '*.cc' '*.h')
mapfile -t shell_files < <(git ls-files '*.sh' .ci/run)

# The form is that of one version: others place a few macros in another way.
if clang-format --version | grep -q 'version 14\.'; then
  check "clang-format" clang-format --dry-run -Werror "${c_files[@]}"
else
  check "clang-format: skipped, the sources have the form of version 14, which Debian 12 has" true
fi
check "cppcheck" cppcheck --quiet --std=c11 --language=c --enable=warning,portability,performance \
  --suppress=missingIncludeSystem --suppress=unusedFunction --suppress=varFuncNullUB \
  --suppress=normalCheckLevelMaxBranches --suppress=incorrectStringBooleanError --inline-suppr --error-exitcode=1 \
  --suppressions-list=tools/cppcheck.txt -D_GNU_SOURCE -I host -i host/codec/regex.cc -j 2 host
check "layers" lua5.4 tools/check-layers.lua
check "English" lua5.4 tools/check-english.lua
check "raises" lua5.4 tools/check-raises.lua
check "operations" lua5.4 tools/check-operations.lua
check "script API" lua5.4 tools/script-api.lua
check "roles of deploy/" tools/deploy-manifests.sh --check
check "facts of kinds" tools/kinds/kinds.sh --check
check "luacheck" luacheck --quiet --no-cache .
check "mutants apply" tools/mutants.sh --check
check "shellcheck" shellcheck -x -S warning "${shell_files[@]}"
if command -v gofmt >/dev/null; then
  check "gofmt" sh -c 'test -z "$(gofmt -l spec/e2e/controlplane bench/load)"'
  check "tests of bench/load" env -C bench/load GOTOOLCHAIN=local CGO_ENABLED=0 go test .
fi
verdicts
