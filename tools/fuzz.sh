#!/usr/bin/env bash
# fuzz.sh [NAME...]: runs each fuzz target, or those of these names ("sandbox script_api"), for
# SECONDS_EACH (600), starting from the corpus beside it; new inputs go to build/fuzz. A finding makes the run fail, and its
# input stays. An input may take SECONDS_INPUT (10) seconds; allow more on a busy machine.
set -euo pipefail
cd "$(dirname "$0")/.."

cmake --preset fuzz >/dev/null
if [ $# -eq 0 ]; then
  cmake --build --preset fuzz
  mapfile -t names < <(basename -a spec/fuzz/fuzz_*.c | sed 's/^fuzz_//; s/\.c$//')
else
  names=("$@")
  cmake --build --preset fuzz --target "${names[@]/#/fuzz_}"
fi
for name in "${names[@]}"; do
  target=build/fuzz/spec/fuzz/fuzz_$name
  found=build/fuzz/corpus/fuzz_$name
  mkdir -p "$found" "spec/fuzz/corpus/$name"
  options=()
  case $name in sandbox | script_api) options+=(-detect_leaks=0) ;; esac # they look for leaks themselves
  # ASan's allocator keeps freed pages, so a process runs for at most ten minutes, which takes 2 GiB.
  for ((left = ${SECONDS_EACH:-600}; left > 0; left -= 600)); do
    echo "== fuzz_$name, $left s"
    "$target" -max_total_time=$((left < 600 ? left : 600)) -max_len=65536 -timeout="${SECONDS_INPUT:-10}" \
      -rss_limit_mb=4096 -print_final_stats=1 "${options[@]}" -artifact_prefix="build/fuzz/fuzz_$name-" \
      "$found" "spec/fuzz/corpus/$name"
  done
done
