#!/usr/bin/env bash
# The roles of deploy/, out of the script that deploy/ carries: what `moonloop rbac` prints for the flags of the Deployments.
# Builds the program if its sources have changed.
#
#   tools/deploy-manifests.sh            writes them
#   tools/deploy-manifests.sh --check    says which differ, and fails then
set -euo pipefail
cd "$(dirname "$0")/.."

[ -f build/asan/CMakeCache.txt ] || cmake --preset asan >/dev/null
cmake --build --preset asan --target moonloop_cli >/dev/null
moonloop=build/asan/moonloop
bad=0

# roles FILE ARGUMENT…: of `moonloop rbac ARGUMENT…`.
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
roles deploy/rbac.yaml reconcilers/cnat.lua --crds crds/ --scripts-configmap moonloop-system/moonloop-scripts --leader-elect
roles deploy/sharded/rbac.yaml --shard
exit "$bad"
