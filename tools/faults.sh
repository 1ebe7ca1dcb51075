#!/usr/bin/env bash
# The fault bench: every row of the fault matrix (spec/faults/rows.txt), on the sanitizer build. Prints a
# table of rows, how often each was tried, and what came of it; fails when a row has no try or a failure.
# Ends with one line that adds everything up.
#
#   tools/faults.sh              all rows
#   tools/faults.sh F11 F12      these only
#   FAULT_SEEDS=1000             seeds of each row that has seeds; FAULT_SEED=17: this one only
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
. tools/tally.sh

readonly folder=spec/faults
readonly programs=build/asan/spec/faults
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:abort_on_error=0}
export MOONLOOP=${MOONLOOP:-$PWD/build/asan/moonloop}
export FAULT_SEEDS=${FAULT_SEEDS:-} FAULT_SEED=${FAULT_SEED:-}
scratch=$(mktemp -d -t moonloop-faults.XXXXXX)
readonly scratch
export FAULTS_TALLY=$scratch/tally
: >"$FAULTS_TALLY"
trap 'rm -rf "$scratch"' EXIT

# is_wanted ROW WORD…: is it among the words, or are there none?
is_wanted() {
  local row=$1
  shift
  [ $# = 0 ] || [[ " $* " == *" $row "* ]]
}

# files_of ROW: "f1_…", and never those of F11.
files_of() {
  local number=${1#F} file
  for file in "$folder/f${number}_"* "$folder/f0${number}_"*; do
    [ -f "$file" ] && echo "$file"
  done
}

run_file() { # FILE
  local program
  case $1 in
    *_test.lua) tally_specs "$1" "$MOONLOOP" test "$1" ;;
    *_spec.lua) tally_busted "$1" "$1" ;;
    *.c)
      program=$programs/$(basename "$1" .c)
      tally_program "$program"
      ;;
    *)
      echo "FAIL $1: a name ends in _test.lua, _spec.lua or .c"
      tally_add 0 1 0
      ;;
  esac
}

tries_of() { # ROW
  awk -v row="$1" '$1 == row { sum += $2 } END { printf "%.0f", sum }' "$FAULTS_TALLY"
}

# run_row ROW: leaves its line of the table in $scratch/ROW.
run_row() {
  local row=$1 start=$SECONDS file outcome words
  while read -r file; do
    run_file "$file" </dev/null
  done < <(files_of "$row")
  if [ "$failed" -gt 0 ]; then
    outcome=FAIL
  elif [ "$(tries_of "$row")" != 0 ]; then
    outcome=ok
  else
    outcome='FAIL: never tried'
    tally_add 0 1 0
  fi
  words=$(sed -n "s/^$row  *//p" "$folder/rows.txt")
  printf '%-4s %-58s %10s  %4ss  %s\n' "$row" "$words" "$(tries_of "$row")" "$((SECONDS - start))" "$outcome" \
    >"$scratch/$row"
}

rows=()
while read -r row _; do
  ! is_wanted "$row" "$@" || rows+=("$row")
done <"$folder/rows.txt"
[ -z "$FAULT_SEED" ] || echo "FAULT_SEED=$FAULT_SEED"
tally_each run_row "${rows[@]}"

# A file that no row claims would never run.
for file in "$folder"/f[0-9]*; do
  [ -e "$file" ] || continue
  number=$(basename "$file" | sed 's/^f0*\([0-9]*\)_.*/\1/')
  if ! grep -q "^F$number " "$folder/rows.txt"; then
    echo "FAIL $file: $folder/rows.txt has no row F$number"
    tally_add 0 1 0
  fi
done

for row in "$@"; do
  if ! grep -q "^$row " "$folder/rows.txt"; then
    echo "FAIL no row $row: there are those of $folder/rows.txt"
    tally_add 0 1 0
  fi
done

printf '\n%-4s %-58s %10s  %5s  %s\n' row fault tries time outcome
for row in "${rows[@]}"; do
  cat "$scratch/$row" || tally_add 0 1 0
done
echo
tally_end
