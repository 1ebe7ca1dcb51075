# shellcheck shell=bash disable=SC2154
# The JSON codec next to memcpy, and to other codecs where they are there: bench_codec says how.
scenario_codec() {
  local build
  build=$(dirname "$moonloop")
  cmake --build "$build" --target bench_codec >"$work/codec.log" 2>&1 || true
  local binary
  binary=$(find "$build" -name bench_codec -type f -perm -u+x | head -n 1)
  if [ -n "$binary" ]; then "$binary" >"$work/codec.txt"; else say 'skipped: no bench_codec'; fi
}
