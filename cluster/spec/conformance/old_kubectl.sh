#!/usr/bin/env bash
# Prints a folder with the distribution's kubectl, which is years older than the current one. Its package is unpacked
# once, not installed. OLD_KUBECTL=DIR: a folder that has it already.
set -euo pipefail

readonly folder=${OLD_KUBECTL:-${MOONLOOP_CACHE:-${HOME:?}/.cache/moonloop}/kubectl-distribution/usr/bin}

download() { apt-get -o APT::Sandbox::User=root -q download kubernetes-client >&2; }

if [ ! -x "$folder/kubectl" ]; then
  whole=${folder%/usr/bin}
  unpacked=$(mktemp -d) # two callers may unpack at the same time
  trap 'rm -rf "$unpacked"' EXIT
  (cd "$unpacked" && { download || { apt-get update -qq >&2 && download; }; } && dpkg -x kubernetes-client_*.deb . &&
    rm -f ./*.deb)
  chmod 755 "$unpacked"
  mkdir -p "$(dirname "$whole")"
  mv -T "$unpacked" "$whole" 2>/dev/null || [ -x "$folder/kubectl" ]
fi
printf '%s\n' "$folder"
