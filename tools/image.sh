#!/usr/bin/env bash
# Builds the image of the Dockerfile, with a container engine or without one, and deploys it.
#
#   tools/image.sh build [TAG]         default moonloop:latest; prints the size, fails from 15 MB on
#   tools/image.sh fresh [TAG]         the same without the cache: takes Debian's fixes of today
#   tools/image.sh rootfs DIR [TAG]    the built image's root filesystem, into an empty folder
#   tools/image.sh deploy TAG          applies deploy/ with that image, by $KUBECTL
#
# Where docker and podman are missing: buildah in a chroot, root needed. The base image is then made
# once with debootstrap and kept in the cache folder, since there is no registry to pull it from.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/debian.sh

readonly base=docker.io/library/debian:bookworm-slim
readonly size_max=$((15 * 1000 * 1000))
readonly cache=${MOONLOOP_CACHE:-$HOME/.cache/moonloop}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
driver=''

say() { echo "image: $*" >&2; }

engine() { # the first one that answers
  local name
  for name in docker podman; do
    if command -v "$name" >/dev/null && "$name" info >/dev/null 2>&1; then
      echo "$name"
      return
    fi
  done
  echo buildah
}

# Layers lie over one another where the cache folder allows it; elsewhere each is a full copy of the one below.
storage_driver() {
  local try
  try=$(mktemp -d "$cache/overlay.XXXXXX")
  mkdir "$try"/{lower,upper,work,merged}
  if mount -t overlay overlay -o "lowerdir=$try/lower,upperdir=$try/upper,workdir=$try/work" "$try/merged" 2>/dev/null; then
    umount "$try/merged"
    echo overlay
  else
    echo vfs
  fi
  rm -rf "$try"
}

buildah_() {
  driver=${driver:-$(storage_driver)}
  BUILDAH_ISOLATION=chroot buildah --storage-driver "$driver" --root "$cache/buildah-$driver" \
    --runroot "$cache/buildah-run-$driver" "$@"
}

# Two builds would prune each other's layers, so a lock keeps them apart. A container that the holder of the lock finds is
# left over from an interrupted build, and would keep its image from being removed.
locked=''
lock() {
  [ -z "$locked" ] || return 0
  mkdir -p "$cache"
  exec 9>"$cache/image.lock"
  flock 9
  buildah_ rm --all >/dev/null
  locked=yes
}

known() { buildah_ inspect --type image "$1" >/dev/null 2>&1; } # IMAGE

make_base() { # the image that the Dockerfile starts from
  local root=$scratch/base container
  ! known "$base" || return 0
  say "making the base image with debootstrap (once)"
  debian_root bookworm "$root" || { tail -n 20 "$root.log" >&2; exit 1; }
  rm -rf "$root/var/cache/apt/archives/"*.deb "$root/var/lib/apt/lists/"*
  container=$(buildah_ from scratch)
  buildah_ add -q "$container" "$root" / >/dev/null
  buildah_ commit -q "$container" "$base" >/dev/null
  buildah_ rm "$container" >/dev/null
}

# A build of the same sources is found by their hash: even an all-cached one may copy each layer.
# A layer may be a full copy, 1 GB each, so only the tools, the last build and TAG are kept.
bud() { # TAG
  local this old
  this=localhost/moonloop-source:$(find Dockerfile .dockerignore CMakeLists.txt cmake lua host -type f -print0 |
    sort -z | xargs -0 sha256sum | sha256sum | cut -c1-16)
  if ! known "$this"; then
    buildah_ bud -q --layers --pull=never --target curl -t localhost/moonloop-tools . >/dev/null
    buildah_ bud -q --layers --pull=never -t "$this" . >/dev/null
  fi
  buildah_ tag "$this" "$1"
  for old in $(buildah_ images --format '{{.Name}}:{{.Tag}}'); do # --filter would list all names of an image
    case $old in "$this") ;; localhost/moonloop-source:*) buildah_ rmi "$old" >/dev/null ;; esac
  done
  buildah_ rmi --prune >/dev/null
}

build() { # TAG [OPTION OF THE ENGINE…]
  local tag=$1 engine size
  shift
  engine=$(engine)
  say "building $tag with $engine"
  if [ "$engine" = buildah ]; then
    [ "$(id -u)" = 0 ] || { say "buildah in a chroot needs root"; exit 1; }
    tools/deps.sh image >&2
    lock
    [ $# = 0 ] || buildah_ rmi --all --force >/dev/null
    make_base
    bud "$tag"
  else
    "$engine" build -q "$@" -t "$tag" . >/dev/null
  fi
  rootfs_of "$tag" "$scratch/contents"
  size=$(du -sb "$scratch/contents" | cut -f1)
  say "$tag: $((size / 1000)) kB"
  [ "$size" -lt "$size_max" ] || { say "not below $((size_max / 1000)) kB"; exit 1; }
}

rootfs_of() { # TAG DIR
  local tag=$1 dir=$2 engine container
  engine=$(engine)
  mkdir -p "$dir"
  if [ "$engine" = buildah ]; then
    { command -v buildah >/dev/null && lock && known "$tag"; } || { say "no $tag yet: tools/image.sh build $tag"; exit 1; }
    container=$(buildah_ from --pull-never "$tag")
    cp -a "$(buildah_ mount "$container")/." "$dir/"
    buildah_ rm "$container" >/dev/null
  else
    container=$("$engine" create "$tag")
    "$engine" export "$container" | tar -x -C "$dir"
    "$engine" rm "$container" >/dev/null
  fi
}

# deploy TAG: a cluster takes a name without a registry from docker.io, where it belongs to somebody else, so it is refused.
deploy() { # TAG
  local image=$1 name manifests=build/deploy
  [[ $image =~ ^[A-Za-z0-9]([A-Za-z0-9._:/@-]*[A-Za-z0-9])?$ && $image == */* ]] || {
    say "deploy which image? Name it with its registry, as it was built and pushed:"
    say "  make docker-build IMAGE=registry.example/moonloop:0.1"
    say "  make deploy IMAGE=registry.example/moonloop:0.1"
    say "A cluster takes a name without a registry${image:+, such as $image,} from docker.io, and that image is not yours."
    say "An image that is loaded into the nodes, and is in no registry, is named localhost/moonloop:0.1."
    exit 2
  }
  name=${image%@*}
  [[ ${name##*/} != *:* ]] || name=${name%:*}
  rm -rf "$manifests"
  mkdir -p build
  cp -r deploy "$manifests" # not a base of it: kubectl before 1.21 and those after call that by two names
  {
    echo "images: # by tools/image.sh deploy $image"
    echo "  - name: registry.invalid/moonloop"
    echo "    newName: $name"
    case $image in
    *@*) echo "    digest: ${image#*@}" ;;
    "$name":*) echo "    newTag: \"${image#"$name":}\"" ;;
    *) echo "    newTag: latest" ;;
    esac
  } >>"$manifests/kustomization.yaml"
  ${KUBECTL:-kubectl} apply -k "$manifests"
}

case ${1-} in
build) build "${2:-moonloop:latest}" ;;
fresh) build "${2:-moonloop:latest}" --pull --no-cache ;;
rootfs)
  [ $# -ge 2 ] || { say "usage: tools/image.sh rootfs DIR [TAG]"; exit 2; }
  rootfs_of "${3:-moonloop:latest}" "$2"
  ;;
deploy) deploy "${2-}" ;;
*)
  say "usage: tools/image.sh build [TAG] | fresh [TAG] | rootfs DIR [TAG] | deploy TAG"
  exit 2
  ;;
esac
