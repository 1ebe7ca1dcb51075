#!/usr/bin/env bash
# Runs the fault bench: every row of the fault matrix (spec/faults/rows.txt), on the sanitizer build. Prints a table of the
# rows with the number of tries and the outcome of each; fails when a row has no try or a failure. Ends with one line that
# adds everything up. tools/test.sh sources it, and runs the rows beside the other suites.
#
#   tools/faults.sh              all rows
#   tools/faults.sh F11 F12      these only
#   FAULT_SEEDS=1000             plays so many seeds of each row that has seeds; FAULT_SEED=17: this one only
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
. tools/tally.sh

# For more than two frames the sanitizer walks up the stack at each allocation, of each value of Lua: four frames take a
# twentieth of all the time, thirty a fifth. A report shows all callers with
# ASAN_OPTIONS=detect_leaks=1:malloc_context_size=30.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:abort_on_error=0:malloc_context_size=2}
export MOONLOOP=${MOONLOOP:-$PWD/build/asan/moonloop}
export FAULT_SEEDS=${FAULT_SEEDS:-} FAULT_SEED=${FAULT_SEED:-}

# faults_begin SCRATCH: prepares this folder for the lines of the table.
faults_begin() {
  faults_scratch=$1
  export FAULTS_TALLY=$faults_scratch/tally
  mkdir -p "$faults_scratch"
  : >"$FAULTS_TALLY"
  [ -z "$FAULT_SEED" ] || echo "FAULT_SEED=$FAULT_SEED"
}

# faults_rows: prints the names of all rows.
faults_rows() {
  cut -d' ' -f1 spec/faults/rows.txt
}

# faults_files ROW: prints the files of a row: for F1, "f1_…" or "f01_…", and not "f11_…".
faults_files() {
  local number=${1#F} file
  for file in "spec/faults/f${number}_"* "spec/faults/f0${number}_"*; do
    [ -f "$file" ] && echo "$file"
  done
}

faults_run_file() { # FILE
  case $1 in
    *_test.lua) tally_specs "$1" "$MOONLOOP" test --timeout 1h "$1" ;;
    *_spec.lua) tally_busted "$1" "$1" ;;
    *.c) tally_program "build/asan/spec/faults/$(basename "$1" .c)" ;;
    *)
      echo "FAIL $1: a name ends in _test.lua, _spec.lua or .c"
      tally_add 0 1 0
      ;;
  esac
}

faults_tries_of() { # ROW
  awk -v row="$1" '$1 == row { sum += $2 } END { printf "%.0f", sum }' "$FAULTS_TALLY"
}

# faults_run ROW: runs a row, and leaves its line of the table. Call it in a shell where nothing has failed yet.
faults_run() {
  local row=$1 start=$SECONDS file outcome words
  while read -r file; do
    faults_run_file "$file" </dev/null
  done < <(faults_files "$row")
  if [ "$failed" -gt 0 ]; then
    outcome=FAIL
  elif [ "$(faults_tries_of "$row")" != 0 ]; then
    outcome=ok
  else
    outcome='FAIL: never tried'
    tally_add 0 1 0
  fi
  words=$(sed -n "s/^$row  *//p" spec/faults/rows.txt)
  printf '%-4s %-58s %10s  %4ss  %s\n' "$row" "$words" "$(faults_tries_of "$row")" "$((SECONDS - start))" "$outcome" \
    >"$faults_scratch/$row"
}

# faults_end ROW…: prints the table. Files without a row, and names that are no rows, count as failures.
faults_end() {
  local row file number
  for file in spec/faults/f[0-9]*; do
    [ -e "$file" ] || continue
    number=$(basename "$file" | sed 's/^f0*\([0-9]*\)_.*/\1/')
    if ! grep -q "^F$number " spec/faults/rows.txt; then
      echo "FAIL $file: spec/faults/rows.txt has no row F$number"
      tally_add 0 1 0
    fi
  done
  printf '\n%-4s %-58s %10s  %5s  %s\n' row fault tries time outcome
  for row; do
    if ! grep -q "^$row " spec/faults/rows.txt; then
      echo "FAIL there is no row $row in spec/faults/rows.txt"
      tally_add 0 1 0
    else
      cat "$faults_scratch/$row" || tally_add 0 1 0
    fi
  done
  echo
}

[ "${BASH_SOURCE[0]}" = "$0" ] || return 0

scratch=$(mktemp -d -t moonloop-faults.XXXXXX)
trap 'rm -rf "$scratch"' EXIT
faults_begin "$scratch"
mapfile -t rows < <(faults_rows)
[ $# = 0 ] || rows=("$@")
mapfile -t known < <(printf '%s\n' "${rows[@]}" | grep -Fx -f <(faults_rows))
tally_each faults_run "${known[@]}"
faults_end "${rows[@]}"
tally_end
