#!/usr/bin/env bash
# Kubernetes' own end-to-end tests against `moonloop dev`: README.md says which, and where what they may fail is listed.
#
#   cluster/spec/kubernetes/run.sh                 all of them, a quarter of an hour
#   cluster/spec/kubernetes/run.sh fast            those that take less than half a minute each
#   cluster/spec/kubernetes/run.sh WORD…           those with such a part in their names ("ResourceQuota")
#   MOONLOOP=PATH                          the binary; default build/release/moonloop
#   KEEP=1                                 keeps what servers and tests have logged, and says where
#   SERVERS=N                              so many servers side by side; default 6: the tests mostly wait
#
# The last line counts tests. Exit code 1 for a test that fails and is not listed in docs/embedded-server.md, for one
# that is listed and passes, and for one that did not run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
. cluster/spec/runner.sh

readonly here=cluster/spec/kubernetes
readonly cache=${MOONLOOP_CACHE:-${HOME:?}/.cache/moonloop}
readonly moonloop=${MOONLOOP:-build/release/moonloop}
readonly servers=${SERVERS:-6}
readonly areas='\[sig-(api-machinery|apps|architecture|auth|cli|instrumentation|network|node|storage)\].*\[Conformance\]'

# The tests, and the programs of their images, unless they are cached; leaves their folder in $programs.
build() {
  local flags=(-trimpath -buildvcs=false -ldflags '-s -w')
  programs=$cache/kubernetes-$(cd $here && cat go.mod go.sum ./*.go agnhost/*.go | sha256sum | cut -c1-16)
  [ ! -d "$programs" ] || return 0
  echo "kubernetes: building the tests (the first time this takes minutes)" >&2
  mkdir -p "$programs.$$"
  (cd $here && export CGO_ENABLED=0 GOTOOLCHAIN=local &&
    go test -c "${flags[@]}" -o "$programs.$$/suite" . &&
    go build "${flags[@]}" -o "$programs.$$/agnhost" ./agnhost) >&2
  mv -T "$programs.$$" "$programs"
}

# Some tests call kubectl.
add_kubectl() {
  mkdir "$run/bin"
  ln -s "$(spec/e2e/controlplane/controlplane.sh kubectl)" "$run/bin/kubectl"
}

# share NUMBER: runs the tests whose names $run/NUMBER.focus matches, on a server of their own.
share() {
  local kubeconfig=$run/$1.kubeconfig dev='' tests='' code=0
  trap 'kill $dev $tests 2>/dev/null; wait; exit 143' TERM
  start_dev "$kubeconfig" "$run/$1.dev" --pod-network own "${images[@]}"
  PATH=$(realpath "$run/bin"):$PATH "${suite[@]}" --kubeconfig="$kubeconfig" --ginkgo.focus="$(cat "$run/$1.focus")" \
    --ginkgo.timeout=40m --ginkgo.json-report="$run/$1.json" >"$run/$1.log" 2>&1 &
  tests=$!
  wait "$tests" || true
  kill -INT "$dev" && wait "$dev" || code=$?
  [ "$code" = 0 ] || echo "FAIL moonloop dev ended with $code: $(tail -n 1 "$run/$1.dev")"
}

unshare -Urmn true 2>/dev/null || {
  echo "kubernetes: this machine allows no user namespaces, and the tests need pods with addresses of their own"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
}
run_in kubernetes
add_kubectl
build
images=(--image agnhost="$programs/agnhost pause" --image pause="$programs/agnhost pause"
  --image httpd="$programs/agnhost test-webserver" --image nginx="$programs/agnhost test-webserver"
  --image nautilus="$programs/agnhost test-webserver" --image nonewprivs="$programs/agnhost nonewprivs")
suite=("$programs/suite" --provider=skeleton --allowed-not-ready-nodes=-1 --ginkgo.no-color --ginkgo.silence-skips)
"${suite[@]}" --ginkgo.dry-run --ginkgo.focus="$areas" --ginkgo.json-report="$run/all.json" >"$run/all.log" 2>&1 ||
  { cat "$run/all.log" >&2; exit 1; }
lua5.4 $here/report.lua plan "$run" "$servers" "$@"
for focus in "$run"/*.focus; do
  share "$(basename "$focus" .focus)" &
done
wait
lua5.4 $here/report.lua judge "$run"
