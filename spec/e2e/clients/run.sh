#!/usr/bin/env bash
# Runs a program with another library than ours against $KUBECONFIG.
#
#   run.sh go | python       a client, in Go or Python
#   run.sh kopf NAMESPACE    an operator on Kopf that we did not write, dask-kubernetes, with its own CRDs; logs to
#                            standard output until it gets a signal
#   run.sh builtins          builds an operator on controller-runtime that we did not write, its example builtins with
#                            webhooks for pods, and prints the program's path
#
# What they need comes from their registries once, and is kept in ${MOONLOOP_CACHE:-~/.cache/moonloop}.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${MOONLOOP_CACHE:-${HOME:?}/.cache/moonloop}
mkdir -p "$cache"

hash_of() { cat "$@" | sha256sum | cut -c1-16; }

run_go() {
  local binary
  cd "$here/go"
  binary=$cache/client-go-$(hash_of go.mod go.sum ./*.go)
  if [ ! -x "$binary" ]; then
    GOTOOLCHAIN=local CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$binary.$$" .
    mv "$binary.$$" "$binary"
  fi
  exec "$binary"
}

# venv FOLDER: makes the environment of FOLDER/requirements.txt, and says where it is.
venv() {
  local venv
  venv=$cache/client-python-$(hash_of "$here/$1/requirements.txt")
  if [ ! -e "$venv/complete" ]; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/$1/requirements.txt"
    touch "$venv/complete"
  fi
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
  if [ ! -x "$binary" ]; then
    GOTOOLCHAIN=local CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$binary.$$" sigs.k8s.io/controller-runtime/examples/builtins
    mv "$binary.$$" "$binary"
  fi
  echo "$binary"
}

case ${1:-} in
  go) run_go ;;
  python) run_python ;;
  builtins) build_builtins ;;
  kopf) run_kopf "${2:?a namespace}" ;;
  *) echo "usage: run.sh go|python|builtins|kopf NAMESPACE" >&2; exit 2 ;;
esac
