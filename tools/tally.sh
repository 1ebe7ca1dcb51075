# shellcheck shell=bash
# Runs test runners, prints how long each took, and adds their counts up. Other scripts source this file. The times go to
# the file $TALLY_TIMES, when there is one: lines of "SECONDS CPU_SECONDS NAME".
passed=0
failed=0
skipped=0
tally_failed=() # the arguments of tally_each with a failure
TIMEFORMAT='%1R %1U %1S' # tally_clock reads this form

# tally_add PASSED FAILED SKIPPED
tally_add() {
  passed=$((passed + $1))
  failed=$((failed + $2))
  skipped=$((skipped + $3))
}

# tally_clock NAME FILE: reads the output of `time` in FILE. Leaves it in $seconds, in the form in which it is printed, and
# keeps it for tally_slowest.
tally_clock() {
  local real user sys
  read -r real user sys < <(tail -n 1 "$2")
  rm -f "$2"
  local tenths=$((10#${user/./} + 10#${sys/./}))
  seconds="$real s, $((tenths / 10)).$((tenths % 10)) s of CPU"
  [ -z "${TALLY_TIMES:-}" ] || echo "$real $((tenths / 10)).$((tenths % 10)) $1" >>"$TALLY_TIMES"
}

# tally_program PROGRAM: runs a cmocka program. A program that ends badly without a failed test of its own (a sanitizer's
# report, a crash) counts as one failure, and so does a missing program.
tally_program() {
  local out code bad seconds clock
  clock=$(mktemp)
  { time out=$(timeout "${TALLY_SECONDS:-300}" "$1" 2>&1); } 2>"$clock"
  code=$?
  tally_clock "$(basename "$1")" "$clock"
  bad=$(grep '^\[  FAILED  \] test_' <<<"$out" | sort -u | wc -l)
  [ "$code" = 0 ] || [ "$bad" -gt 0 ] || bad=1
  tally_add "$(grep -c '^\[       OK \]' <<<"$out")" "$bad" "$(grep -c '^\[  SKIPPED \]' <<<"$out")"
  if [ "$code" = 0 ]; then
    echo "ok   $(basename "$1") ($seconds)"
  else
    echo "FAIL $(basename "$1") (exit $code, $seconds)"
    # A sanitizer's report of the memory that a failed test leaked may be long.
    grep -E '^ERROR: |\[  ERROR   \]|^\[  FAILED  \] test_' <<<"$out" | sort -u
    tail -n 60 <<<"$out"
  fi
}

# tally_waits ARGUMENT: succeeds for an argument of tally_each whose call mostly waits. A script that has such calls defines
# its own.
tally_waits() { false; }

# tally_each FUNCTION ARGUMENT…: calls the function for each argument, for $TALLY_SLOTS (as many as there are processors)
# at once, and beside them for $TALLY_WAITING_SLOTS (one) of those that mostly wait. When no others are left, those have all
# slots. Prints their outputs in the order of the arguments, each as soon as the ones before are done. The calls run in
# subshells, and only their counts come back. Each is a process group of its own, so that Ctrl-C ends them too.
tally_each() {
  local function=$1 results number printed=0 pid lane
  shift
  local arguments=("$@") working=() waiting=()
  local -A lanes=() free=([working]=${TALLY_SLOTS:-$(nproc)} [waiting]=${TALLY_WAITING_SLOTS:-1})
  for number in "${!arguments[@]}"; do
    if tally_waits "${arguments[number]}"; then waiting+=("$number"); else working+=("$number"); fi
  done
  results=$(mktemp -d -t moonloop-tally.XXXXXX)
  trap 'tally_stop INT' INT
  trap 'tally_stop TERM' TERM
  set -m
  while [ ${#working[@]} -gt 0 ] || [ ${#waiting[@]} -gt 0 ] || [ ${#lanes[@]} -gt 0 ]; do
    while [ ${#working[@]} -gt 0 ] && [ "${free[working]}" -gt 0 ]; do
      tally_start "${working[0]}" working
      working=("${working[@]:1}")
    done
    while [ ${#waiting[@]} -gt 0 ]; do
      lane=waiting
      [ "${free[waiting]}" -gt 0 ] || [ ${#working[@]} -gt 0 ] || lane=working
      [ "${free[$lane]}" -gt 0 ] || break
      tally_start "${waiting[0]}" "$lane"
      waiting=("${waiting[@]:1}")
    done
    wait -n -p pid
    free[${lanes[$pid]}]=$((free[${lanes[$pid]}] + 1))
    unset "lanes[$pid]"
    tally_print_done
  done
  set +m
  trap - INT TERM
  for number in "${!arguments[@]}"; do # a call that was killed left no counts, and is a failure
    [ -e "$results/$number.counts" ] || echo 0 1 0 >"$results/$number.counts"
  done
  tally_print_done
  rm -rf "$results"
}

# tally_start NUMBER LANE: starts the call for the argument of this number, in a slot of the lane. A part of tally_each.
tally_start() {
  (
    passed=0 failed=0 skipped=0
    "$function" "${arguments[$1]}" </dev/null >"$results/$1.out" 2>&1
    echo "$passed $failed $skipped" >"$results/$1.new"
    mv "$results/$1.new" "$results/$1.counts"
  ) &
  lanes[$!]=$2
  free[$2]=$((free[$2] - 1))
}

# tally_print_done: prints and counts the results up to the first that is missing. A part of tally_each.
tally_print_done() {
  local counts
  while [ -e "$results/$printed.counts" ]; do
    cat "$results/$printed.out"
    read -ra counts <"$results/$printed.counts"
    tally_add "${counts[@]}"
    [ "${counts[1]}" = 0 ] || tally_failed+=("${arguments[printed]}")
    printed=$((printed + 1))
  done
}

# tally_stop SIGNAL: ends the calls of tally_each, waits for them, and then ends this process by the same signal.
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

# tally_run TITLE COMMAND…: runs a command, and copies its output to the file $out; $code is its exit code.
tally_run() {
  local title=$1 clock seconds
  shift
  echo "== $title"
  out=$(mktemp)
  clock=$(mktemp)
  {
    time "$@" 2>&1 | tee "$out"
    code=${PIPESTATUS[0]}
  } 2>"$clock"
  tally_clock "$title" "$clock"
  echo "== $title: $seconds"
}

# tally_specs TITLE COMMAND…: runs a command that runs specs and ends with busted's line of counts. A missing line is a
# failure, and so is an exit code that the line does not explain.
tally_specs() {
  local out code line
  tally_run "$@"
  line=$(grep -E '^[0-9]+ success(es)? / ' "$out" | tail -n 1)
  rm -f "$out"
  if [[ $line =~ ^([0-9]+)\ success(es)?\ /\ ([0-9]+)\ failures?\ /\ ([0-9]+)\ errors?\ /\ ([0-9]+)\ pending ]]; then
    local bad=$((BASH_REMATCH[3] + BASH_REMATCH[4]))
    [ "$code" = 0 ] || [ "$bad" -gt 0 ] || bad=1
    tally_add "${BASH_REMATCH[1]}" "$bad" "${BASH_REMATCH[5]}"
  else
    echo "FAIL $1: no result (exit $code)"
    tally_add 0 1 0
  fi
}

# tally_busted TITLE PATH…: runs specs by busted in plain Lua.
tally_busted() {
  local title=$1
  shift
  LUA_PATH="./?.lua;./?/init.lua;lua/?.lua;lua/?/init.lua;reconcilers/?.lua;;" tally_specs "$title" busted --lua=lua5.4 -o utfTerminal \
    --pattern='_spec%.lua$' "$@"
}

# tally_trusted TITLE PATH…: runs specs by busted in hostlua, which has the host's bindings and a sandbox.
tally_trusted() {
  local title=$1
  shift
  LUA_PATH="./?.lua;./?/init.lua;lua/?.lua;lua/?/init.lua;cluster/spec/apiserver/?.lua;spec/lua/?.lua;;" tally_specs "$title" busted \
    --lua="$PWD/build/asan/cluster/spec/hostlua/hostlua" -o utfTerminal --pattern='_spec%.lua$' "$@"
}

# tally_closing FILE CODE: FILE has the output of a command with this exit code. Adds the counts in its line of tally_end,
# and fails when there is no such line.
tally_closing() {
  local line
  line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$1" | tail -n 1)
  [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]] || return
  local bad=${BASH_REMATCH[2]}
  [ "$2" = 0 ] || [ "$bad" -gt 0 ] || bad=1
  tally_add "${BASH_REMATCH[1]}" "$bad" "${BASH_REMATCH[3]}"
}

# tally_script TITLE COMMAND…: runs a command that ends with the line of tally_end.
tally_script() {
  local out code
  tally_run "$@"
  tally_closing "$out" "$code" || {
    echo "FAIL $1: no result (exit $code)"
    tally_add 0 1 0
  }
  rm -f "$out"
}

# tally_slowest COUNT: prints the time since the script began, and the slowest entries of $TALLY_TIMES.
tally_slowest() {
  local real cpu name
  printf '== %s s, %s s of CPU; the slowest of %s:\n' "$SECONDS" \
    "$(awk '{ sum += $2 } END { printf "%.0f", sum }' "$TALLY_TIMES")" "$(wc -l <"$TALLY_TIMES")"
  sort -rn "$TALLY_TIMES" | head -n "$1" | while read -r real cpu name; do
    printf '%8s s %8s s of CPU  %s\n' "$real" "$cpu" "$name"
  done
}

tally_end() {
  echo "$passed passed, $failed failed, $skipped skipped"
  [ "$failed" = 0 ]
}
