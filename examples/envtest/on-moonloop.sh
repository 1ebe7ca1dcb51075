#!/usr/bin/env bash
# Runs a program that uses envtest with an API server of its own, as `go test -exec "$PWD/on-moonloop.sh" ./...` does for
# the tests of each package.
set -euo pipefail

place=$(mktemp -d)
"${MOONLOOP:-moonloop}" dev --controllers none --write-kubeconfig "$place/kubeconfig" >"$place/log" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null; wait; rm -rf "$place"' EXIT
until [ -s "$place/kubeconfig" ]; do
  kill -0 "$server" 2>/dev/null || { cat "$place/log" >&2; exit 1; }
  sleep 0.01
done
USE_EXISTING_CLUSTER=true KUBECONFIG=$place/kubeconfig "$@"
