#!/usr/bin/env bash
# Runs the end-to-end specs on both servers, compares the two servers, and runs Kubernetes' own tests, all at once. The last
# line adds them up.
#
#   tools/e2e.sh             all of it, as `make e2e` does
#   tools/e2e.sh SPEC…       only these specs; arguments are those of spec/e2e/run.sh
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
. tools/tally.sh

# Kubernetes' components, etcd and kubectl collect their garbage less often: a sixth less CPU time in all, for some memory.
export GOGC=400 GOMEMLIMIT=1GiB

scratch=$(mktemp -d -t moonloop-e2e-specs.XXXXXX)
trap 'rm -rf "$scratch"' EXIT

# The specs that take longest come first, so that no server is left with one of them at the end. deploy_spec and
# container_spec come last: they wait for the image.
readonly longest=(server_away lost_link replicas auth hostile faults sharding operators_killed connection lifecycle rights
  scripts_configmap poison crash operators_namespace)
for server in controlplane embedded; do
  {
    printf 'spec/e2e/%s_spec.lua\n' "${longest[@]}"
    printf '%s\n' spec/e2e/*_spec.lua | grep -v -e /container_spec -e /deploy_spec
    printf '%s\n' spec/e2e/deploy_spec.lua spec/e2e/container_spec.lua
  } | awk '!seen[$0]++' >"$scratch/$server"
done

# part NAME: runs a part. The parts that compute yield to the specs, which have deadlines to keep.
part() {
  case $1 in
    controlplane-*) SERVER=controlplane SPECS=$scratch/controlplane tally_script "end to end" spec/e2e/run.sh ;;
    embedded-*) SERVER=embedded SPECS=$scratch/embedded tally_script "end to end" spec/e2e/run.sh ;;
    kubernetes) MOONLOOP='' SERVERS=6 tally_script "Kubernetes' own tests" nice -n 5 cluster/spec/kubernetes/run.sh fast ;;
    conformance) MOONLOOP='' tally_script conformance nice -n 5 cluster/spec/conformance/run.sh ;;
  esac
}

# A cluster of $KUBECONFIG has no second server to compare it with.
if [ $# -gt 0 ] || [ -n "${KUBECONFIG:-}" ]; then
  tally_script "end to end" spec/e2e/run.sh "$@"
else
  tools/deps.sh servers || echo "e2e: PostgreSQL, MariaDB and Redis could not be installed; their specs are left out" >&2
  spec/e2e/controlplane/controlplane.sh build >/dev/null && spec/e2e/controlplane/controlplane.sh kubectl >/dev/null || exit
  # These two build the image, or wait until this has built it: minutes of compiling, while other specs wait.
  (nice -n 5 tools/image.sh build >/dev/null 2>&1 &)
  echo "end to end on a control plane and on the embedded server, and the two compared: some eight minutes"
  # Specs wait most of the time, for leases and credentials to expire: more of them run at once than there are processors.
  # With six, two processors had twenty programs that wanted to run, and deadlines of specs passed. The last one begins when
  # the parts that compute have ended.
  TALLY_SLOTS=4 tally_each part controlplane-{1,2,3} embedded-{1,2} conformance kubernetes embedded-3
fi
tally_end
