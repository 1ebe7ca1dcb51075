#!/usr/bin/env bash
# The end-to-end specs on both servers, the two held against each other, and Kubernetes' own tests, all at once; the
# last line adds them up.
#
#   tools/e2e.sh             all of it, as `make e2e` does
#   tools/e2e.sh SPEC…       only these specs; arguments are those of spec/e2e/run.sh
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
. tools/tally.sh

# Specs that wait most of the time, for leases and credentials to expire, have a server of their own.
readonly waiting=(spec/e2e/replicas_spec.lua spec/e2e/auth_spec.lua spec/e2e/sharding_spec.lua)
mapfile -t others < <(printf '%s\n' spec/e2e/*_spec.lua | grep -vFx -f <(printf '%s\n' "${waiting[@]}"))

part() {
  case $1 in
    controlplane) SERVER=controlplane tally_script "end to end" spec/e2e/run.sh "${others[@]}" ;;
    waiting) SERVER=controlplane tally_script "end to end, what waits" spec/e2e/run.sh "${waiting[@]}" ;;
    embedded) SERVER=embedded tally_script "end to end" spec/e2e/run.sh "${others[@]}" ;;
    embedded-waiting) SERVER=embedded tally_script "end to end, what waits" spec/e2e/run.sh "${waiting[@]}" ;;
    kubernetes) MOONLOOP='' SERVERS=4 tally_script "Kubernetes' own tests" spec/kubernetes/run.sh fast ;;
    conformance) MOONLOOP='' tally_script conformance spec/conformance/run.sh ;;
  esac
}

# Against a cluster that somebody has there is nothing to compare.
if [ $# -gt 0 ] || [ -n "${KUBECONFIG:-}" ]; then
  tally_script "end to end" spec/e2e/run.sh "$@"
else
  tools/deps.sh servers || echo "e2e: PostgreSQL and Redis could not be installed; their specs are left out" >&2
  spec/e2e/controlplane/controlplane.sh build >/dev/null || exit
  # container_spec builds the image, or waits until this has built it: minutes of compiling, while other specs wait.
  (tools/image.sh build >/dev/null 2>&1 &)
  echo "end to end on a control plane and on the embedded server, and the two compared: some ten minutes"
  TALLY_SLOTS=3 tally_each part waiting embedded-waiting kubernetes controlplane embedded conformance
fi
tally_end
