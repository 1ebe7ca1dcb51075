#!/usr/bin/env bash
# Checks that the suites detect bugs. Each spec/mutants/NAME.patch is a bug. The script applies it to a copy of the checkout
# and builds that; the bug is caught when a suite fails that passes without it. spec/mutants/README.md says how to write a
# patch.
#
#   tools/mutants.sh             all of them
#   tools/mutants.sh NAME…       only these
#   tools/mutants.sh --check     checks that each applies (part of make lint)
#
# JOBS (2) compilers run at a time. A suite hangs when it takes five times as long as without the patch, and that is a catch
# too. When none of its own suites catches a mutant, all of `make test` runs once with it. The copy stays in build/mutants,
# for the next time.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
. tools/tally.sh

readonly folder=spec/mutants copy=$PWD/build/mutants
readonly KINDS="unit server script binary attack fault" # of suites, see run_suite
readonly jobs=${JOBS:-2}
readonly patience_all=2400 # seconds for all of make test, with the release build that it needs
export GIT_CEILING_DIRECTORIES=$PWD/build # the copy is no part of this repository
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0

# ---- patches ----

field() { # NAME FIELD: prints this field of the head of a patch, a line each
  sed -n "/^--- /q; s/^$2: //p" "$folder/$1.patch"
}

all_names() {
  local patch
  for patch in "$folder"/*.patch; do
    basename "$patch" .patch
  done
}

unit_source() { # test_LAYER_MODULE
  local layer=${1#test_}
  layer=${layer%%_*}
  local place=spec/unit/$layer
  [ "$layer" != cluster ] || place=cluster/spec/unit
  echo "$place/test_${1#test_"$layer"_}.c"
}

check() { # NAME…
  local name what kind words file bad=0
  for name; do
    for what in bug like suite; do
      [ -n "$(field "$name" "$what")" ] || { echo "$folder/$name.patch: has no line '$what: …'"; bad=1; }
    done
    git apply --check "$folder/$name.patch" || { echo "$folder/$name.patch: does not apply any more"; bad=1; }
    while read -r kind words; do
      [[ " $KINDS " = *" $kind "* ]] || { echo "$folder/$name.patch: no suite is a '$kind'; a suite is one of: $KINDS"; bad=1; }
      for file in $words; do
        [ "$kind" != unit ] || file=$(unit_source "$file")
        [ "$kind" != attack ] || file=spec/attacks/$file.lua
        [ "$kind" = fault ] || [[ $file == -* ]] || [ -e "$file" ] ||
          { echo "$folder/$name.patch: there is no $file"; bad=1; }
      done
    done < <(field "$name" suite)
  done
  return "$bad"
}

# ---- the copy ----

# Unchanged files stay untouched, so that only the rest is compiled again.
make_copy() {
  local wanted file
  mkdir -p "$copy/build"
  wanted=$(git ls-files --cached --others --exclude-standard | while read -r file; do [ ! -f "$file" ] || echo "$file"; done | sort)
  (cd "$copy" && find . -path ./build -prune -o -type f -printf '%P\n' | sort |
    comm -13 <(echo "$wanted") - | xargs -r -d '\n' rm -f)
  while read -r file; do
    cmp -s "$file" "$copy/$file" || cp --parents --preserve=mode "$file" "$copy"
  done <<<"$wanted"
}

# build_for: builds the targets of these suites.
build_for() { # SUITE…
  local suite targets
  # shellcheck disable=SC2086 # words of a suite
  mapfile -t targets < <(for suite; do targets_of $suite; done | sort -u)
  (cd "$copy" && cmake --preset asan && cmake --build build/asan -j "$jobs" ${targets:+--target "${targets[@]}"}) \
    &>"$copy/build/log"
}

patch_copy() { # NAME [--reverse]
  git -C "$copy" apply "${@:2}" "$folder/$1.patch" # the one of the copy
}

# ---- suites: a kind of KINDS and its arguments, as in a patch's line `suite:` ----

targets_of() { # KIND ARG…
  case $1 in
  unit) echo "$2" ;;
  server) echo hostlua ;;
  script | binary) echo moonloop_cli ;;
  attack) echo attacks ;;
  fault) echo moonloop_cli && programs_of "${@:2}" ;;
  all) echo all ;;
  esac
}

programs_of() { # ROW…: those of the fault bench
  local row file
  for row; do
    for file in "spec/faults/f${row#F}_"*.c "spec/faults/f0${row#F}_"*.c; do
      [ ! -f "$file" ] || basename "$file" .c
    done
  done
}

run_suite() { # KIND ARG…
  case $1 in
  unit) "build/asan/spec/unit/$2" ;;
  server) tally_trusted "$2" "${@:2}" ;;
  script) build/asan/moonloop test "${@:2}" ;;
  binary) MOONLOOP=$PWD/build/asan/moonloop tally_busted "$2" "${@:2}" ;;
  fault) tools/faults.sh "${@:2}" ;;
  attack) run_attacks "${@:2}" ;;
  all) tools/test.sh "${@:2}" ;;
  esac
}

# The runner has sanitizer options of its own.
run_attacks() { # CLASS/NAME…
  (unset ASAN_OPTIONS && build/asan/spec/attacks/attacks "$@")
}
export -f run_suite run_attacks

# passes SECONDS KIND ARG…: runs a suite in the copy, and leaves its output in $copy/build/log.
passes() {
  # shellcheck disable=SC2016 # expanded by the inner shell
  (cd "$copy" && timeout -k 5 "$1" bash -c '
    . tools/tally.sh
    run_suite "$@" && [ "$failed" = 0 ]' bash "${@:2}") &>"$copy/build/log"
}

# complaint: prints the first complaint of the suite that failed.
complaint() { # EXIT CODE
  [ "$1" != 124 ] && [ "$1" != 137 ] || { echo "hangs"; return; }
  grep -a -m 1 -oE '^\[  FAILED  \] test_.*|^FAIL .*|^(Failure|Error) → .*|^[^ ]+ (Failure|Error).*|ERROR: [A-Za-z]+Sanitizer: [a-z-]+|runtime error: .*' \
    "$copy/build/log" | sed 's/^\[  FAILED  \] //' | cut -c1-100 | grep . ||
    sed -n 's/^\[ RUN      \] /crashes in /p' "$copy/build/log" | tail -n 1
}

# ---- a mutant ----

declare -A patience # suite -> seconds, when it passes without any patch
declare -A begun # mutant -> when
uncaught=()

report() { # NAME OUTCOME TEXT
  printf '%-4s %-36s %4d s  %s\n' "$2" "$1" "$((SECONDS - begun[$1]))" "$3"
}

# Runs suites until one fails. 0: caught, 1: not, 2: cannot be tried.
try() { # NAME SUITE…
  local name=$1 suite code
  shift
  build_for "$@" || { report "$name" FAIL "does not build"; tail -n 20 "$copy/build/log"; return 2; }
  for suite; do
    [ -n "${patience[$suite]-}" ] || continue
    # shellcheck disable=SC2086
    passes "${patience[$suite]}" $suite && continue
    code=$?
    report "$name" ok "$suite: $(complaint "$code")"
    return 0
  done
  return 1
}

mutant() { # NAME SUITE…
  local outcome
  begun[$1]=${begun[$1]:-$SECONDS}
  patch_copy "$1" || { report "$1" FAIL "does not apply any more"; return 2; }
  try "$@"
  outcome=$?
  patch_copy "$1" --reverse || exit 1
  return "$outcome"
}

# All of `make test` once with the patch; then what failed of it, without. 0: caught, 1: not, 2: cannot be tried.
mutant_against_all() { # NAME
  local name=$1 code seen suites
  patch_copy "$name" || exit 1
  build_for all && passes "$patience_all" all
  code=$?
  seen=$(complaint "$code")
  suites=$(sed -n 's/^failed suites: //p' "$copy/build/log")
  patch_copy "$name" --reverse || exit 1
  [ "$code" != 0 ] || return 1
  [ -n "$suites" ] || [ "$seen" = hangs ] || { report "$name" FAIL "make test has no result: $seen"; return 2; }
  # shellcheck disable=SC2086
  [ "$seen" = hangs ] || { build_for all && passes "$patience_all" all $suites; } ||
    { report "$name" FAIL "fails without the patch, too: one of $suites"; return 2; }
  report "$name" ok "make test: $seen"
}

# ---- all of it ----

baseline() { # SUITE…
  local suite start
  build_for "$@" || { tail -n 40 "$copy/build/log"; echo "FAIL the copy does not build"; exit 1; }
  for suite; do
    start=$SECONDS
    # shellcheck disable=SC2086
    if passes 1800 $suite; then
      patience[$suite]=$((20 + 5 * (SECONDS - start)))
    else
      echo "FAIL without any patch: $suite"
      tail -n 40 "$copy/build/log"
      tally_add 0 1 0
    fi
  done
}

main() { # NAME…
  local name suites
  make_copy
  mapfile -t suites < <(for name; do field "$name" suite; done | sort -u)
  baseline "${suites[@]}"
  echo "without a patch ${#patience[@]} suites pass, after $SECONDS s"
  for name; do
    mapfile -t suites < <(field "$name" suite)
    mutant "$name" "${suites[@]}"
    case $? in
    0) tally_add 1 0 0 ;;
    1) uncaught+=("$name") ;;
    *) tally_add 0 1 0 ;;
    esac
  done
  for name in "${uncaught[@]}"; do
    report "$name" ... "none of its suites catches it; now all of make test, once"
    mutant_against_all "$name"
    case $? in
    0) tally_add 1 0 0 ;;
    1) report "$name" FAIL "not caught: $(field "$name" bug)" && tally_add 0 1 0 ;;
    *) tally_add 0 1 0 ;;
    esac
  done
  tally_end
}

if [ "${1-}" = --check ]; then
  mapfile -t names < <(all_names)
  check "${names[@]}"
elif [ $# -gt 0 ]; then
  main "$@"
else
  mapfile -t names < <(all_names)
  main "${names[@]}"
fi
