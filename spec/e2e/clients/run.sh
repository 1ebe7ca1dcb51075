#!/usr/bin/env bash
# Runs a program with another library than ours against $KUBECONFIG.
#
#   run.sh go | python       a client, in Go or Python
#   run.sh kopf NAMESPACE    an operator on Kopf that we did not write, dask-kubernetes, with its own CRDs; logs to
#                            standard output until it gets a signal
#   run.sh builtins          builds an operator on controller-runtime that we did not write, its example builtins with
#                            webhooks for pods, and prints the program's path
#
# Their dependencies come from their registries once, and are kept in ${MOONLOOP_CACHE:-~/.cache/moonloop}.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${MOONLOOP_CACHE:-${HOME:?}/.cache/moonloop}
mkdir -p "$cache"

hash_of() { cat "$@" | sha256sum | cut -c1-16; }

# once FILE COMMAND…: runs a command that makes FILE, unless it is there. The specs of two servers run at the same time:
# one of them makes it, the other waits.
once() {
  local file=$1
  shift
  (
    flock 9
    [ -e "$file" ] || "$@" "$file" >&2
  ) 9>>"$cache/clients.lock"
}

build_go() { # PACKAGE FILE
  GOTOOLCHAIN=local CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$2.new" "$1"
  mv "$2.new" "$2"
}

run_go() {
  local binary
  cd "$here/go"
  binary=$cache/client-go-$(hash_of go.mod go.sum ./*.go)
  once "$binary" build_go .
  exec "$binary"
}

make_venv() { # REQUIREMENTS FILE: the file is made when all is installed
  local folder
  folder=$(dirname "$2")
  rm -rf "$folder"
  python3 -m venv "$folder"
  "$folder/bin/pip" install --quiet --disable-pip-version-check -r "$1"
  touch "$2"
}

# venv FOLDER: makes the environment of FOLDER/requirements.txt, and says where it is.
venv() {
  local venv
  venv=$cache/client-python-$(hash_of "$here/$1/requirements.txt")
  once "$venv/complete" make_venv "$here/$1/requirements.txt"
  echo "$venv"
}

run_python() {
  local venv
  venv=$(venv python)
  exec "$venv/bin/python" "$here/python/client.py"
}

run_kopf() { # NAMESPACE
  local venv package
  venv=$(venv kopf)
  package=$("$venv/bin/python" -c 'import dask_kubernetes; print(dask_kubernetes.__path__[0])')
  "${KUBECTL:-kubectl}" apply --filename "$package/operator/deployment/helm/dask-kubernetes-operator/crds"
  "$here/../established.sh" crd/dask{clusters,workergroups,jobs,autoscalers}.kubernetes.dask.org
  exec "$venv/bin/kopf" run --module dask_kubernetes.operator.controller --namespace "$1" --standalone --log-format=plain 2>&1
}

build_builtins() {
  local binary
  cd "$here/builtins"
  binary=$cache/builtins-$(hash_of go.mod go.sum)
  once "$binary" build_go sigs.k8s.io/controller-runtime/examples/builtins
  echo "$binary"
}

case ${1:-} in
  go) run_go ;;
  python) run_python ;;
  builtins) build_builtins ;;
  kopf) run_kopf "${2:?a namespace}" ;;
  *) echo "usage: run.sh go|python|builtins|kopf NAMESPACE" >&2; exit 2 ;;
esac
