#!/usr/bin/env bash
# The end-to-end specs, then both servers held against each other; the last line adds them up.
#
#   tools/e2e.sh             all of it, as `make e2e` does
#   tools/e2e.sh SPEC…       only these specs; arguments are those of spec/e2e/run.sh
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
. tools/tally.sh

tally_script spec/e2e/run.sh "$@"
# Against a cluster that somebody has there is nothing to compare.
[ $# -gt 0 ] || [ -n "${KUBECONFIG:-}" ] || MOONLOOP='' tally_script spec/conformance/run.sh
tally_end
