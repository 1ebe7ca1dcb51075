#!/usr/bin/env bash
# Writes the roles of deploy/: the output of `moonloop rbac` for the script and the flags of the Deployments. Builds the
# program if its sources have changed.
#
#   tools/deploy-manifests.sh            writes them
#   tools/deploy-manifests.sh --check    prints the differences, and fails when there is one
set -euo pipefail
cd "$(dirname "$0")/.."

[ -f build/asan/CMakeCache.txt ] || cmake --preset asan >/dev/null
cmake --build --preset asan --target moonloop_cli >/dev/null
moonloop=build/asan/moonloop
bad=0

# roles FILE ARGUMENT…: writes or compares the output of `moonloop rbac ARGUMENT…`.
roles() {
  local file=$1 text
  shift
  text=$("$moonloop" rbac "$@")
  if [ "${mode:-}" != --check ]; then
    printf '%s\n' "$text" >"$file"
  elif ! diff -u "$file" <(printf '%s\n' "$text"); then
    echo "$file: not what the scripts need; write it with: make deploy-manifests"
    bad=1
  fi
}

mode=${1:-}
roles deploy/rbac.yaml reconcilers/cnat.lua --crds crds/ --scripts-configmap moonloop-system/moonloop-scripts --leader-elect \
  --inspect-bind-address 127.0.0.1:8082
roles deploy/sharded/rbac.yaml --shard
exit "$bad"
