#!/usr/bin/env bash
# controller-runtime's own tests, each suite with a server of its own: `moonloop dev --controllers none`.
#
#   cluster/spec/controller-runtime/run.sh             all of them, two minutes
#   cluster/spec/controller-runtime/run.sh SUITE…      these: client, cache, …
#   MOONLOOP=PATH                                      the binary; default build/release/moonloop
#   KUBECONFIG=FILE                                    with this server in place of ours, one suite after the other
#   KEEP=1                                             keeps what the tests have printed, and says where
#
# The last line counts tests. Exit code 1 for a test that fails, and for a suite that did not run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
. cluster/spec/runner.sh

readonly here=$PWD/cluster/spec/controller-runtime
readonly cache=${MOONLOOP_CACHE:-${HOME:?}/.cache/moonloop}
readonly module=sigs.k8s.io/controller-runtime
moonloop=$(realpath -m "${MOONLOOP:-build/release/moonloop}")
export MOONLOOP=$moonloop GOTOOLCHAIN=local
suites=(client cache builder controller cluster manager webhook)
[ $# -eq 0 ] || suites=("$@")

# The programs of the suites, unless they are cached; leaves their folder in $programs.
build() {
  local suite
  programs=$cache/controller-runtime-$(cat "$here"/go.{mod,sum} | sha256sum | cut -c1-16)
  mkdir -p "$programs"
  for suite in "${suites[@]}"; do
    [ ! -x "$programs/$suite" ] || continue
    echo "controller-runtime: building $suite" >&2
    (cd "$here" && CGO_ENABLED=0 go test -c -trimpath -buildvcs=false -ldflags '-s -w' \
      -o "$programs/$suite.$$" "$module/pkg/$suite") >&2
    mv "$programs/$suite.$$" "$programs/$suite"
  done
}

# suite NAME: runs one where its files are, as `go test -exec` does.
suite() {
  local on=("$here/../../../examples/envtest/on-moonloop.sh")
  [ -z "${KUBECONFIG:-}" ] || on=(env USE_EXISTING_CLUSTER=true)
  cd "$sources/pkg/$1"
  exec "${on[@]}" "$programs/$1" -test.timeout 10m --ginkgo.no-color --ginkgo.json-report="$run/$1.json" \
    >"$run/$1.log" 2>&1
}

run_in controller-runtime
build
sources=$(cd "$here" && go mod download -json "$module" | sed -n 's/.*"Dir": "\(.*\)",/\1/p')
for name in "${suites[@]}"; do
  (suite "$name") &
  [ -z "${KUBECONFIG:-}" ] || wait
done
wait
lua5.4 "$here/report.lua" "$run" "${suites[@]}"
