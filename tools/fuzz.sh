#!/usr/bin/env bash
# Runs each fuzz target for SECONDS_EACH (600), starting from the corpus kept beside it; new
# inputs go to build/fuzz. Any finding fails and leaves the input that shows it.
set -euo pipefail
cd "$(dirname "$0")/.."

cmake --preset fuzz >/dev/null
cmake --build --preset fuzz
for target in build/fuzz/spec/fuzz/fuzz_*; do
  [ -x "$target" ] && [ -f "$target" ] || continue
  name=$(basename "$target")
  found=build/fuzz/corpus/$name
  mkdir -p "$found" "spec/fuzz/corpus/${name#fuzz_}"
  echo "== $name"
  "$target" -max_total_time="${SECONDS_EACH:-600}" -max_len=65536 -timeout=10 -rss_limit_mb=2048 \
    -print_final_stats=1 -artifact_prefix="build/fuzz/$name-" "$found" "spec/fuzz/corpus/${name#fuzz_}"
done
