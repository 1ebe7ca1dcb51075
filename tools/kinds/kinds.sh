#!/usr/bin/env bash
# Writes the facts of the embedded API server about the kinds of Kubernetes (cluster/kinds) from the Go modules
# of the version in go.mod, and the checksums of generator and facts. Needs Go.
#
#   tools/kinds/kinds.sh             writes them again (make kinds)
#   tools/kinds/kinds.sh --check     checks that this generator wrote the facts. Needs no Go (part of make lint)
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly facts=cluster/kinds sums=tools/kinds/facts.sha256

checksums() {
  find tools/kinds "$facts" -name '*.go' -o -name 'go.*' -o -name '*.lua' | LC_ALL=C sort | xargs sha256sum
}

generate() {
  local source
  cd tools/kinds
  export CGO_ENABLED=0 GOTOOLCHAIN=local
  go mod download k8s.io/kubernetes
  source=$(go list -m -f '{{.Dir}}' k8s.io/kubernetes)
  go run -trimpath -buildvcs=false . -kubernetes "$source" -to "$OLDPWD/$facts"
  cd "$OLDPWD"
}

if [ "${1-}" = --check ]; then
  checksums | diff "$sums" - || { echo "$facts is not what tools/kinds writes: run make kinds"; exit 1; }
else
  generate
  checksums >"$sums"
fi
