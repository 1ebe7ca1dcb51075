#!/usr/bin/env bash
# Builds the image of the Dockerfile, with an engine where one runs and without one elsewhere.
#
#   tools/image.sh build [TAG]     default moonloop:latest; prints the size, fails from 15 MB on
#   tools/image.sh rootfs DIR      the built image's root filesystem, into an empty folder
#
# Without docker or podman: buildah in a chroot, root needed. The base image cannot be pulled
# then without a registry, so it is made once with debootstrap and kept in the cache folder.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly base=docker.io/library/debian:bookworm-slim
readonly size_max=$((15 * 1000 * 1000))
readonly cache=${MOONLOOP_CACHE:-$HOME/.cache/moonloop}

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

buildah_() {
  BUILDAH_ISOLATION=chroot buildah --storage-driver vfs --root "$cache/buildah" --runroot "$cache/buildah-run" "$@"
}

need() { # PACKAGE…
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "installing ${missing[*]}"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

make_base() { # the image that the Dockerfile starts from
  local work container
  buildah_ inspect --type image "$base" >/dev/null 2>&1 && return 0
  say "making the base image with debootstrap (once)"
  work=$(mktemp -d)
  debootstrap --variant=minbase bookworm "$work/root" >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; exit 1; }
  rm -rf "$work/root/var/cache/apt/archives/"*.deb "$work/root/var/lib/apt/lists/"*
  container=$(buildah_ from scratch)
  buildah_ add -q "$container" "$work/root" / >/dev/null
  buildah_ commit -q "$container" "$base" >/dev/null
  buildah_ rm "$container" >/dev/null
  rm -rf "$work"
}

# A build of the same sources is found by their hash: even an all-cached one copies each layer.
bud() { # TAG
  local known
  known=localhost/moonloop-source:$(git ls-files -z Dockerfile .dockerignore CMakeLists.txt cmake lua host |
    xargs -0 sha256sum | sha256sum | cut -c1-16)
  if ! buildah_ inspect --type image "$known" >/dev/null 2>&1; then
    buildah_ bud -q --layers --pull=never -t "$known" . >/dev/null
  fi
  buildah_ tag "$known" "$1"
}

build() { # TAG
  local tag=$1 engine size contents
  engine=$(engine)
  say "building $tag with $engine"
  if [ "$engine" = buildah ]; then
    [ "$(id -u)" = 0 ] || { say "buildah in a chroot needs root"; exit 1; }
    need buildah debootstrap
    make_base
    bud "$tag"
  else
    "$engine" build -q -t "$tag" . >/dev/null
  fi
  contents=$(mktemp -d)
  rootfs_of "$tag" "$contents"
  size=$(du -sb "$contents" | cut -f1)
  rm -rf "$contents"
  say "$tag: $((size / 1000)) kB"
  [ "$size" -lt "$size_max" ] || { say "larger than $((size_max / 1000)) kB"; exit 1; }
}

rootfs_of() { # TAG DIR
  local tag=$1 dir=$2 engine container
  engine=$(engine)
  mkdir -p "$dir"
  if [ "$engine" = buildah ]; then
    container=$(buildah_ from --pull-never "$tag")
    cp -a "$(buildah_ mount "$container")/." "$dir/"
    buildah_ rm "$container" >/dev/null
  else
    container=$("$engine" create "$tag")
    "$engine" export "$container" | tar -x -C "$dir"
    "$engine" rm "$container" >/dev/null
  fi
}

case ${1-} in
build) build "${2:-moonloop:latest}" ;;
rootfs)
  [ $# = 2 ] || { say "usage: tools/image.sh rootfs DIR"; exit 2; }
  rootfs_of moonloop:latest "$2"
  ;;
*)
  say "usage: tools/image.sh build [TAG] | rootfs DIR"
  exit 2
  ;;
esac
