#!/usr/bin/env bash
# Holds the embedded API server against a real one: both are started, asked the same, and compared.
#
#   cluster/spec/conformance/run.sh                     every scenario and every session
#   cluster/spec/conformance/run.sh watch/ sessions/at  those with such a part in their names
#   cluster/spec/conformance/run.sh cel-spec            only cel-spec's own cases of CEL, which need no server: cluster/spec/cel
#   CONTROLPLANE=DIR cluster/spec/conformance/run.sh …  against a control plane that runs, and goes on running:
#                                               spec/e2e/controlplane/controlplane.sh up DIR
#   MOONLOOP=PATH HOSTLUA=PATH                  the binary, and the interpreter that plays the scenarios
#   OLD_KUBECTL=DIR                             a folder with the distribution's kubectl; default: its package, unpacked
#   JOBS=N                                      so many scenarios at a time on each server; default 4
#
# The last line counts scenarios and cases of cel-spec; a session is one for each kubectl. Exit code 1 for a difference that is not listed
# in docs/embedded-server.md, and for one that is listed and is none.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

readonly main=cluster/spec/conformance/main.lua
readonly controlplane=spec/e2e/controlplane/controlplane.sh
readonly moonloop=${MOONLOOP:-build/release/moonloop}
readonly hostlua=${HOSTLUA:-build/release/cluster/spec/hostlua/hostlua}
run=$(mktemp -d -t moonloop-conformance.XXXXXX)
dev_pid='' real_pid='' started=''

finish() {
  [ -z "$real_pid" ] || kill "$real_pid" 2>/dev/null || true
  [ -z "$dev_pid" ] || { kill "$dev_pid" 2>/dev/null && wait "$dev_pid" 2>/dev/null; } || true
  [ -z "$started" ] || "$controlplane" down "$run/cp" 2>/dev/null
  rm -rf "$run"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

current_kubectl() {
  mkdir "$run/kubectl"
  ln -s "$("$controlplane" kubectl)" "$run/kubectl/kubectl"
  printf '%s\n' "$run/kubectl"
}

version_of() { "$1/kubectl" version --client -o json | sed -n 's/.*"gitVersion": "v\([0-9]*\.[0-9]*\).*/\1/p'; }

start_embedded() {
  "$moonloop" dev --authorization-mode RBAC --pods process --pod-network host --write-kubeconfig "$run/embedded.kubeconfig" \
    --log-level warn >"$run/dev.log" 2>&1 </dev/null &
  dev_pid=$!
  for _ in $(seq 200); do
    [ ! -s "$run/embedded.kubeconfig" ] || return 0
    sleep 0.05
  done
  echo "conformance: moonloop dev did not start:" >&2
  cat "$run/dev.log" >&2
  exit 1
}

# play NAME KUBECONFIG [FILTER…] writes down, in a folder of that name, what a server answers to each scenario.
play() {
  local folder=$run/$1/ kubeconfig=$2
  shift 2
  "$hostlua" "$main" list "$@" | xargs -r -n 1 -P "${JOBS:-4}" "$hostlua" "$main" play "$kubeconfig" "$folder"
}

# cel-spec's cases are in the Go module that Kubernetes has of it.
judge_cel() {
  local folder
  (cd spec/e2e/controlplane && go mod download cel.dev/expr)
  folder=$(cd spec/e2e/controlplane && go list -m -f '{{.Dir}}' cel.dev/expr)
  LUA_PATH="cluster/spec/cel/?.lua;$LUA_PATH" "$hostlua" cluster/spec/cel/judge.lua "$folder/tests/simple/testdata"
}

# add_up FILE: the sum of its lines "n passed, n failed, n skipped".
add_up() {
  awk '/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { p += $1; f += $3; s += $5 }
    END { printf "%d passed, %d failed, %d skipped\n", p, f, s }' "$1"
}

export LUA_PATH="./?.lua;./?/init.lua;lua/?.lua;lua/?/init.lua;;"
if [ "$*" = cel-spec ]; then
  judge_cel
  exit
fi
for program in "$moonloop" "$hostlua"; do
  [ -x "$program" ] || { echo "conformance: no $program; build it first: make conformance" >&2; exit 1; }
done
old=$(cluster/spec/conformance/old_kubectl.sh)
current=$(current_kubectl)
CONFORMANCE_KUBECTLS="$(version_of "$old")=$old $(version_of "$current")=$current"
export CONFORMANCE_KUBECTLS

controlplane_dir=${CONTROLPLANE:-$run/cp}
if [ -z "${CONTROLPLANE:-}" ]; then
  started=yes
  "$controlplane" up "$controlplane_dir"
fi
start_embedded
play real "$controlplane_dir/kubeconfig" "$@" &
real_pid=$!
outcome=0
play embedded "$run/embedded.kubeconfig" "$@" || outcome=1
wait "$real_pid" || outcome=1
real_pid=''
"$hostlua" "$main" compare "$run/real/" "$run/embedded/" "$@" | tee "$run/counts" || outcome=1
if [ $# = 0 ]; then
  echo "cel-spec:"
  judge_cel | tee -a "$run/counts" || outcome=1
  add_up "$run/counts"
fi
exit "$outcome"
