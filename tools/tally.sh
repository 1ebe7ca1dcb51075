# shellcheck shell=bash
# Sourced. Runs test runners one after another and adds their counts up.
passed=0
failed=0
skipped=0

# tally_add PASSED FAILED SKIPPED
tally_add() {
  passed=$((passed + $1))
  failed=$((failed + $2))
  skipped=$((skipped + $3))
}

# tally_program PROGRAM: a cmocka program. One that ends badly without a failed test of its own (a
# sanitizer's report, a crash) counts as one failure, and so does one that is not there.
tally_program() {
  local out code bad
  out=$(timeout "${TALLY_SECONDS:-300}" "$1" 2>&1)
  code=$?
  bad=$(grep '^\[  FAILED  \] test_' <<<"$out" | sort -u | wc -l)
  [ "$code" = 0 ] || [ "$bad" -gt 0 ] || bad=1
  tally_add "$(grep -c '^\[       OK \]' <<<"$out")" "$bad" "$(grep -c '^\[  SKIPPED \]' <<<"$out")"
  if [ "$code" = 0 ]; then
    echo "ok   $(basename "$1")"
  else
    echo "FAIL $(basename "$1") (exit $code)"
    # A sanitizer's report of what the failed test left behind may be long.
    grep -E '^ERROR: |\[  ERROR   \]|^\[  FAILED  \] test_' <<<"$out" | sort -u
    tail -n 60 <<<"$out"
  fi
}

# tally_each FUNCTION ARGUMENT…: calls it for each of them, for as many at once as there are processors,
# and prints what they print in their order. What it sets is lost, but for the counts. Ctrl-C ends them too:
# each is a process group, as what runs in the background would ignore it.
tally_each() {
  local function=$1 results number=0 counts argument
  shift
  results=$(mktemp -d -t moonloop-tally.XXXXXX)
  trap 'tally_stop INT' INT
  trap 'tally_stop TERM' TERM
  set -m
  for argument in "$@"; do
    [ "$(jobs -rp | wc -l)" -lt "$(nproc)" ] || wait -n
    number=$((number + 1))
    (
      passed=0 failed=0 skipped=0
      "$function" "$argument" </dev/null >"$results/$number.out" 2>&1
      echo "$passed $failed $skipped" >"$results/$number.counts"
    ) &
  done
  wait
  set +m
  trap - INT TERM
  for number in $(seq $#); do
    cat "$results/$number.out"
    read -ra counts <"$results/$number.counts" || counts=(0 1 0)
    tally_add "${counts[@]}"
  done
  rm -rf "$results"
}

# tally_stop SIGNAL: ends what tally_each has begun and, once that is over, as the signal does.
tally_stop() {
  local group
  for group in $(jobs -p); do
    kill -TERM -- "-$group" 2>/dev/null
  done
  wait
  rm -rf "$results"
  trap - "$1"
  kill "-$1" "$$"
}

# tally_units FOLDER: every cmocka program in it.
tally_units() {
  local program found=()
  for program in "$1"/test_*; do
    [ -x "$program" ] && [ -f "$program" ] && found+=("$program")
  done
  tally_each tally_program "${found[@]}"
}

# tally_specs TITLE COMMAND…: a command that runs specs and ends with busted's line of counts. No
# such line is a failure, and so is an exit code that the line does not explain.
tally_specs() {
  local title=$1 out code line
  shift
  echo "== $title"
  out=$(mktemp)
  "$@" 2>&1 | tee "$out"
  code=${PIPESTATUS[0]}
  line=$(grep -E '^[0-9]+ success(es)? / ' "$out" | tail -n 1)
  rm -f "$out"
  if [[ $line =~ ^([0-9]+)\ success(es)?\ /\ ([0-9]+)\ failures?\ /\ ([0-9]+)\ errors?\ /\ ([0-9]+)\ pending ]]; then
    local bad=$((BASH_REMATCH[3] + BASH_REMATCH[4]))
    [ "$code" = 0 ] || [ "$bad" -gt 0 ] || bad=1
    tally_add "${BASH_REMATCH[1]}" "$bad" "${BASH_REMATCH[5]}"
  else
    echo "FAIL $title: no result (exit $code)"
    tally_add 0 1 0
  fi
}

# tally_busted TITLE PATH…: specs by busted in plain Lua.
tally_busted() {
  local title=$1
  shift
  LUA_PATH="lua/?.lua;lua/?/init.lua;reconcilers/?.lua;;" tally_specs "$title" busted --lua=lua5.4 -o utfTerminal \
    --pattern='_spec%.lua$' "$@"
}

# tally_trusted TITLE PATH…: specs by busted in the Lua of the host's own, with its bindings.
tally_trusted() {
  local title=$1
  shift
  LUA_PATH="lua/?.lua;lua/?/init.lua;spec/apiserver/?.lua;;" tally_specs "$title" busted \
    --lua="$PWD/build/asan/spec/hostlua/hostlua" -o utfTerminal --pattern='_spec%.lua$' "$@"
}

# tally_script COMMAND…: a command that ends with the line of tally_end.
tally_script() {
  local out code line
  out=$(mktemp)
  "$@" 2>&1 | tee "$out"
  code=${PIPESTATUS[0]}
  line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$out" | tail -n 1)
  rm -f "$out"
  if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
    local bad=${BASH_REMATCH[2]}
    [ "$code" = 0 ] || [ "$bad" -gt 0 ] || bad=1
    tally_add "${BASH_REMATCH[1]}" "$bad" "${BASH_REMATCH[3]}"
  else
    echo "FAIL $1: no result (exit $code)"
    tally_add 0 1 0
  fi
}

tally_end() {
  echo "$passed passed, $failed failed, $skipped skipped"
  [ "$failed" = 0 ]
}
