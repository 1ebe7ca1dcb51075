#!/usr/bin/env bash
# Runs a part of `make test`: builds the targets that this part needs in the sanitizer build, and runs nothing else.
#
#   tools/test-part.sh cluster/spec/apiserver/quota_spec.lua     a file of tests, or a folder of such files
#   tools/test-part.sh circuit                           C units, or specs, with this word in their names
#   tools/test-part.sh F23                               a row of the fault bench (FAULT_SEED=17 for one seed)
#   tools/test-part.sh gas/loop                          a hostile program of spec/attacks
#   tools/test-part.sh cluster/spec/cel                          cel-spec's own cases (needs Go)
#
# It takes several parts, too. When nothing matches, it prints the names that are similar, and exits with 2.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit

readonly most=12 # suites that a word may stand for

# catalogue: a line for each file of tests: its suite in tools/test.sh, the targets that it needs (with commas), the file.
catalogue() {
  local file name layer row
  for file in spec/unit/*/test_*.c; do
    layer=${file#spec/unit/} name=${file##*/test_}
    name=test_${layer%%/*}_${name%.c}
    echo "build/asan/spec/unit/$name $name $file"
  done
  for file in cluster/spec/unit/test_*.c; do
    name=test_cluster_${file##*/test_} name=${name%.c}
    echo "build/asan/spec/unit/$name $name $file"
  done
  for file in cluster/spec/apiserver/*_spec.lua spec/lua/*_spec.lua; do
    echo "$file hostlua $file"
  done
  echo "cel-spec hostlua cluster/spec/cel/judge.lua"
  find spec/host reconcilers examples spec/testing -name '*_spec.lua' -o -name '*_test.lua' | sort | sed 's/.*/& moonloop_cli &/'
  for file in spec/faults/f[0-9]*; do
    name=${file##*/} row=${file##*/f}
    row=${row%%_*}
    [[ $file == *.c ]] && name=${name%.c},moonloop_cli || name=moonloop_cli
    echo "F${row#0} $name $file"
  done
  find spec/attacks -mindepth 2 -name '*.lua' | sort | sed 's,^spec/attacks/\(.*\)\.lua$,attacks/asan/\1 attacks &,'
}

# elsewhere PART: fails, and prints the command, for tests that `make test` does not contain.
elsewhere() {
  local instead
  case $1 in
    spec/e2e/*) instead="make e2e ARGS=$1" ;;
    cluster/spec/conformance/scenarios/*) instead="make conformance ARGS=$(sed 's,^cluster/spec/conformance/scenarios/,,; s,\.txt$,,' <<<"$1")" ;;
    cluster/spec/conformance*) instead="make conformance" ;;
    cluster/spec/controller-runtime*) instead="make controller-runtime" ;;
    cluster/spec/kubernetes*) instead="make conformance-suite" ;;
    cluster/spec/operators*) instead="make operators" ;;
    spec/mutants/*) instead="make mutants ARGS=$(basename "$1" .patch)" ;;
    spec/fuzz/fuzz_*) instead="make fuzz ARGS=$(basename "$1" .c | sed 's/^fuzz_//')" ;;
    *) return 0 ;;
  esac
  echo "test: $1 is not a part of make test; run: $instead" >&2
  return 1
}

# matches PART: the lines of the catalogue that PART stands for. The first of these rules that finds a line decides: PART is
# a suite or a file; a folder; a name without its folder and ending; the beginning of a word in the name of a C unit; of any
# file; letters in the name of a C unit; of any file.
matches() {
  awk -v part="$(tr '[:upper:]' '[:lower:]' <<<"${1%/}")" '
    function stem(name) { sub(".*/", "", name); sub(/\.[a-z]+$/, "", name); return name }
    function plain(name) { name = stem(name); sub(/^test_/, "", name); sub(/_(spec|test)$/, "", name); return name }
    {
      suite = tolower($1); file = tolower($3); text = suite " " file; is_unit = file ~ "^(cluster/)?spec/unit/"
      rule = 0
      if (suite == part || file == part || suite == "attacks/asan/" part) rule = 1
      else if (index(file, part "/") == 1) rule = 2
      else if (plain(file) == part || stem(file) == part || stem(suite) == part) rule = 3
      else if (index(text, "_" part) || index(text, "/" part)) rule = is_unit ? 4 : 5
      else if (index(text, part)) rule = is_unit ? 6 : 7
      if (rule) found[rule] = found[rule] $0 "\n"
    }
    END { for (rule = 1; rule <= 7; rule++) if (found[rule] != "") { printf "%s", found[rule]; exit } }
  ' "$scratch/catalogue"
}

# similar PART: the files with a word that differs from PART in a few letters. The words of a name end at "_".
similar() {
  local word=${1##*/}
  word=${word%.*} word=${word#test_} word=${word%_spec} word=${word%_test}
  awk -v word="$word" '
    function distance(a, b,   i, j, row, diagonal, cost) {
      for (j = 0; j <= length(b); j++) row[j] = j
      for (i = 1; i <= length(a); i++) {
        diagonal = row[0]
        row[0] = i
        for (j = 1; j <= length(b); j++) {
          cost = diagonal + (substr(a, i, 1) != substr(b, j, 1))
          if (row[j] + 1 < cost) cost = row[j] + 1
          if (row[j - 1] + 1 < cost) cost = row[j - 1] + 1
          diagonal = row[j]
          row[j] = cost
        }
      }
      return row[length(b)]
    }
    {
      name = $3; sub(".*/", "", name); sub(/\.[a-z]+$/, "", name); sub(/^test_/, "", name); sub(/_(spec|test)$/, "", name)
      best = distance(word, name)
      count = split(name, words, "_")
      for (i = 1; i <= count; i++) {
        differs = distance(word, words[i])
        if (differs < best) best = differs
      }
      if (best <= length(word) / 3) print best, $3
    }
  ' "$scratch/catalogue" | sort -n | cut -d' ' -f2 | head -n "$most"
}

# nothing PART: says that PART matches nothing, and which names are there.
nothing() {
  local names
  echo "test: nothing is called $1"
  names=$(similar "$1")
  if [[ $1 =~ ^[Ff][0-9]+$ ]]; then
    echo "rows of the fault bench: $(cut -d' ' -f1 spec/faults/rows.txt | paste -sd' ')"
  elif [ -n "$names" ]; then
    printf 'similar names:\n%s\n' "$names"
  else
    cat <<'PARTS'
T takes a file of tests (cluster/spec/apiserver/quota_spec.lua), a folder (spec/unit/state), a word in the name of a C unit or of a
spec (circuit), a row of the fault bench (F23), a hostile program (gas/loop), or cluster/spec/cel. spec/README.md has the list.
PARTS
  fi
}

# choose PART: adds its lines to $scratch/chosen, or says why it cannot.
choose() {
  local found count
  elsewhere "$1" || return
  found=$(matches "$1")
  count=$(cut -d' ' -f1 <<<"$found" | sort -u | grep -c .)
  if [ "$count" = 0 ]; then
    nothing "$1" >&2
    return 1
  elif [ "$count" -gt "$most" ] && [ ! -d "$1" ]; then
    printf 'test: %s stands for %d suites; name one of them:\n%s\n' "$1" "$count" "$(cut -d' ' -f3 <<<"$found")" >&2
    return 1
  fi
  echo "$found" >>"$scratch/chosen"
}

[ $# -gt 0 ] || { echo "usage: tools/test-part.sh PART…; the head of that file lists the parts" >&2; exit 2; }
scratch=$(mktemp -d -t moonloop-test-part.XXXXXX)
trap 'rm -rf "$scratch"' EXIT
catalogue >"$scratch/catalogue"
for part; do
  choose "$part" || exit 2
done
# A row of the fault bench needs the targets of all its files.
mapfile -t suites < <(cut -d' ' -f1 "$scratch/chosen" | awk '!seen[$0]++')
mapfile -t targets < <(printf '%s\n' "${suites[@]}" |
  awk 'NR == FNR { wanted[$0]; next } $1 in wanted { print $2 }' - "$scratch/catalogue" | tr , '\n' | sort -u)
cmake --preset asan >/dev/null || exit # it finds new files of tests
cmake --build build/asan --target "${targets[@]}" || exit
tools/test.sh "${suites[@]}"
