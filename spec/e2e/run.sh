#!/usr/bin/env bash
# Runs the end-to-end specs: on the cluster of $KUBECONFIG where that is set; else twice, on a control
# plane of their own and then on the API server of `moonloop dev`. Both are started for them, and taken
# down afterwards. Ends with one line that adds everything up.
#
#   spec/e2e/run.sh                                  all of them, on both
#   spec/e2e/run.sh spec/e2e/faults_spec.lua         some; arguments are busted's, --filter too
#   CONTROLPLANE=DIR spec/e2e/run.sh …               on one that runs, and goes on running:
#                                                    controlplane/controlplane.sh up DIR
#   SERVER=controlplane|embedded spec/e2e/run.sh …   on one of the two only
#   SPECS=FILE spec/e2e/run.sh                       the specs of the file, a line each; whoever runs one takes its
#                                                    line out first, so that several may share the file
#   MOONLOOP=PATH                                    the binary; default build/release/moonloop
#
# Specs that need an audit log or the proxy before the server are pending on other clusters, and those
# that restart the server or show a client certificate on all but the control plane.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. tools/tally.sh

readonly controlplane=spec/e2e/controlplane/controlplane.sh
run=$(mktemp -d -t moonloop-e2e.XXXXXX)
api_pid='' dev_pid='' outcome=1

take_down() {
  [ -z "$api_pid" ] || { kill "$api_pid" && wait "$api_pid"; } 2>/dev/null || true
  [ -z "$dev_pid" ] || { kill "$dev_pid" && wait "$dev_pid"; } 2>/dev/null || true
  "$controlplane" down "$run/cp" 2>/dev/null
  "$controlplane" down "$run/proxies" 2>/dev/null
  api_pid='' dev_pid=''
}

finish() {
  take_down
  if [ "$outcome" = 0 ]; then
    rm -rf "$run"
  else
    echo "e2e: logs of the host and of the control plane: $run" >&2
  fi
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Garbage collection looks for new kinds every 30 s; a new controller manager looks at once.
use_controlplane() { # DIR
  export E2E_CONTROLPLANE=$1 E2E_PROXIES=$1 E2E_AUDIT=$1/audit.log KUBECONFIG=$1/kubeconfig KUBECTL=$1/kubectl
  if ! "$KUBECTL" get crd ats.cnat.programming-kubernetes.info >/dev/null 2>&1; then
    "$KUBECTL" apply -f crds >/dev/null
    spec/e2e/established.sh -f crds/at.yaml >/dev/null
    "$controlplane" restart "$1" kube-controller-manager
  fi
}

# `moonloop dev` without scripts: the specs bring their own host.
use_embedded() {
  local kubectl
  kubectl=$("$controlplane" kubectl)
  export E2E_CONTROLPLANE='' E2E_PROXIES=$run/proxies E2E_AUDIT=$run/audit.log
  export KUBECONFIG=$run/kubeconfig KUBECTL=$run/kubectl
  mkdir "$E2E_PROXIES"
  ln -s "$kubectl" "$KUBECTL"
  "$MOONLOOP" dev --apply crds --write-kubeconfig "$KUBECONFIG" --audit-log "$E2E_AUDIT" >"$run/dev.log" 2>&1 &
  dev_pid=$!
  for _ in $(seq 200); do
    ! "$KUBECTL" get crd ats.cnat.programming-kubernetes.info >/dev/null 2>&1 || return 0
    sleep 0.05
  done
  echo "e2e: moonloop dev did not start:" >&2
  cat "$run/dev.log" >&2
  exit 1
}

use_cluster() {
  export E2E_CONTROLPLANE='' E2E_PROXIES='' E2E_AUDIT='' KUBECTL=${KUBECTL:-kubectl}
  command -v "$KUBECTL" >/dev/null || { echo "e2e: no kubectl on PATH; name one with KUBECTL=" >&2; exit 1; }
  echo "e2e: on the cluster of KUBECONFIG=$KUBECONFIG"
  "$KUBECTL" apply -f crds
  spec/e2e/established.sh -f crds/at.yaml
}

# Starts kubectl proxy, through which the specs read the state of the world. Only users who may open its socket get in.
start_api() {
  export E2E_API=$run/api.sock
  rm -f "$E2E_API"
  "$KUBECTL" proxy --unix-socket="$E2E_API" >"$run/api.log" 2>&1 &
  api_pid=$!
  for _ in $(seq 200); do
    [ ! -S "$E2E_API" ] || return 0
    sleep 0.05
  done
  echo "e2e: kubectl proxy did not start:" >&2
  cat "$run/api.log" >&2
  exit 1
}

# next_spec: the first line of the file $SPECS, which has it no more then; fails when there is none.
next_spec() {
  (
    flock 9
    read -r spec <"$SPECS" || exit 1
    sed -i 1d "$SPECS"
    printf '%s\n' "$spec"
  ) 9>"$SPECS.lock"
}

# specs WHERE ARGUMENT…: runs them on what was chosen, and counts. Failures are counted, and end nothing.
specs() {
  local where=$1 spec
  shift
  start_api
  export E2E_TMP="$run/logs-${where// /-}"
  mkdir "$E2E_TMP"
  if [ -n "${SPECS:-}" ]; then
    while spec=$(next_spec); do
      tally_busted "$spec on $where" "$spec" || true
    done
  else
    tally_busted "end to end on $where, $MOONLOOP" "$@" || true
  fi
  take_down
}

export MOONLOOP=${MOONLOOP:-$PWD/build/release/moonloop}
[ -x "$MOONLOOP" ] || { echo "e2e: no $MOONLOOP; build it first: make build" >&2; exit 1; }
# Four frames say who allocated, as in tools/faults.sh.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:abort_on_error=0:malloc_context_size=4}

[ $# -gt 0 ] || set -- spec/e2e

if [ -n "${CONTROLPLANE:-}" ]; then
  use_controlplane "$CONTROLPLANE"
  specs "a control plane" "$@"
elif [ -n "${KUBECONFIG:-}" ] && [ -z "${SERVER:-}" ]; then
  use_cluster
  specs "a cluster" "$@"
else
  if [ "${SERVER:-controlplane}" = controlplane ]; then
    "$controlplane" up "$run/cp"
    use_controlplane "$run/cp"
    specs "a control plane" "$@"
  fi
  if [ "${SERVER:-embedded}" = embedded ]; then
    use_embedded
    specs "the embedded server" "$@"
  fi
fi
tally_end && outcome=0
exit "$outcome"
