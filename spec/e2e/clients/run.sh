#!/usr/bin/env bash
# Runs a client program in another language against $KUBECONFIG: run.sh go, run.sh python.
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

run_python() {
  local venv
  venv=$cache/client-python-$(hash_of "$here/python/requirements.txt")
  if [ ! -e "$venv/complete" ]; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/python/requirements.txt"
    touch "$venv/complete"
  fi
  exec "$venv/bin/python" "$here/python/client.py"
}

case ${1:-} in
  go) run_go ;;
  python) run_python ;;
  *) echo "usage: run.sh go|python" >&2; exit 2 ;;
esac
