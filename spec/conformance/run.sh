#!/usr/bin/env bash
# Holds the embedded API server against a real one: both are started, asked the same, and compared.
#
#   spec/conformance/run.sh                     every scenario and every session
#   spec/conformance/run.sh watch/ sessions/at  those with such a part in their names
#   CONTROLPLANE=DIR spec/conformance/run.sh …  against a control plane that runs, and goes on running:
#                                               spec/e2e/controlplane/controlplane.sh up DIR
#   MOONLOOP=PATH HOSTLUA=PATH                  the binary, and the interpreter that plays the scenarios
#   OLD_KUBECTL=DIR                             a folder with the distribution's kubectl; default: its package, unpacked
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

readonly controlplane=spec/e2e/controlplane/controlplane.sh
readonly cache=${MOONLOOP_CACHE:-${HOME:?}/.cache/moonloop}
readonly moonloop=${MOONLOOP:-build/release/moonloop}
readonly hostlua=${HOSTLUA:-build/asan/spec/hostlua/hostlua}
run=$(mktemp -d -t moonloop-conformance.XXXXXX)
dev_pid='' started=''

finish() {
  [ -z "$dev_pid" ] || { kill "$dev_pid" 2>/dev/null && wait "$dev_pid" 2>/dev/null; } || true
  [ -z "$started" ] || "$controlplane" down "$run/cp" 2>/dev/null
  rm -rf "$run"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The kubectl that the distribution has is years older; it is unpacked, not installed.
old_kubectl() {
  local folder=$cache/kubectl-distribution
  if [ ! -x "$folder/usr/bin/kubectl" ]; then
    mkdir -p "$folder"
    (cd "$folder" && apt-get download -q kubernetes-client >&2 && dpkg -x kubernetes-client_*.deb . && rm -f ./*.deb)
  fi
  printf '%s/usr/bin\n' "$folder"
}

# The current one is part of the control plane's binary.
current_kubectl() {
  mkdir "$run/kubectl"
  printf '#!/bin/sh\nexec %q kubectl "$@"\n' "$("$controlplane" build)" >"$run/kubectl/kubectl"
  chmod +x "$run/kubectl/kubectl"
  printf '%s\n' "$run/kubectl"
}

version_of() { "$1/kubectl" version --client -o json | sed -n 's/.*"gitVersion": "v\([0-9]*\.[0-9]*\).*/\1/p'; }

start_embedded() {
  "$moonloop" dev --authorization-mode RBAC --pods process --write-kubeconfig "$run/embedded" \
    --log-level warn >"$run/dev.log" 2>&1 </dev/null &
  dev_pid=$!
  for _ in $(seq 200); do
    [ ! -s "$run/embedded" ] || return 0
    sleep 0.05
  done
  echo "conformance: moonloop dev did not start:" >&2
  cat "$run/dev.log" >&2
  exit 1
}

for program in "$moonloop" "$hostlua"; do
  [ -x "$program" ] || { echo "conformance: no $program; build it first: make build asan" >&2; exit 1; }
done
real=${CONTROLPLANE:-$run/cp}
if [ -z "${CONTROLPLANE:-}" ]; then
  started=yes
  "$controlplane" up "$run/cp"
fi
start_embedded
ln -s "$real/kubeconfig" "$run/real"
old=${OLD_KUBECTL:-$(old_kubectl)}
current=$(current_kubectl)
CONFORMANCE_KUBECTLS="$(version_of "$old")=$old $(version_of "$current")=$current"
export CONFORMANCE_KUBECTLS
export LUA_PATH="./?.lua;lua/?.lua;lua/?/init.lua;;"
"$hostlua" spec/conformance/main.lua compare "$run/real" "$run/embedded" "$@"
