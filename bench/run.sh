#!/usr/bin/env bash
# Takes the figures of README.md on a control plane of its own and writes RESULTS.md.
# Figures go as "name<TAB>value" lines, several for a figure that was taken several times, to a
# file that report.lua reads: what is measured stands in scenarios/, what is said of it there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat >&2 <<USAGE
usage: bench/run.sh [quick] [SCENARIO...]
scenarios: codec idle start reload edit overtake lateness hostile lifecycles memory operators cache webhooks recovery failover
           embedded   (default: these, in this order)
           floor   (lifecycles again, next to a bare client)
           soak flapping   (long: MINUTES, default 30 and 10; they fail when a bound is broken)
quick: fewer and smaller runs; the targets that need the large ones are not judged.
With quick or a choice of scenarios the report is printed, and RESULTS.md left alone.
  MOONLOOP         binary to measure       default build/release/moonloop
  MOONLOOP_IMAGE   the image's binary      default the one in moonloop:latest (make docker-build), else skipped
  BENCH_KEEP=1     keep the folder with logs and raw figures
USAGE
  exit 2
}

quick=no scenarios=()
for word in "$@"; do
  case $word in
  quick) quick=yes ;;
  *) [ -f "bench/scenarios/$word.sh" ] || usage; scenarios+=("$word") ;;
  esac
done
whole=no
[ "$quick" = yes ] || [ ${#scenarios[@]} -gt 0 ] || whole=yes
[ ${#scenarios[@]} -gt 0 ] || scenarios=(codec idle start reload edit overtake lateness hostile lifecycles memory operators cache webhooks \
  recovery failover embedded)

moonloop=$(realpath -m "${MOONLOOP:-build/release/moonloop}")
[ -x "$moonloop" ] || { echo "bench: there is no $moonloop: run make build" >&2; exit 1; }
work=$(mktemp -d "${TMPDIR:-/tmp}/moonloop-bench.XXXXXX")
. bench/lib.sh
trap cleanup EXIT
trap 'exit 130' INT TERM

prepare
for scenario in "${scenarios[@]}"; do
  say "$scenario"
  record "noise.loop_ms" "$(calibrate)"
  # shellcheck source=/dev/null
  . "bench/scenarios/$scenario.sh"
  "scenario_$scenario"
done
record "noise.loop_ms" "$(calibrate)"
record "meta.seconds" "$SECONDS"

lua5.4 bench/report.lua "$work" >"$work/RESULTS.md"
[ "$whole" = no ] || cp "$work/RESULTS.md" bench/RESULTS.md
cat "$work/RESULTS.md"
