#!/usr/bin/env bash
# promtool of the distribution's package prometheus, with these arguments. The package is unpacked once and not installed:
# an installed one starts a server. PROMTOOL=FILE: one that is there already.
set -euo pipefail

readonly unpacked=${MOONLOOP_CACHE:-${HOME:?}/.cache/moonloop}/promtool-distribution
promtool=${PROMTOOL:-$unpacked/promtool}

download() { apt-get -o APT::Sandbox::User=root -q download prometheus >&2; }

if [ ! -x "$promtool" ]; then
  fresh=$(mktemp -d) # two callers may unpack at the same time
  trap 'rm -rf "$fresh"' EXIT
  (cd "$fresh" && { download || { apt-get update -qq >&2 && download; }; } && dpkg -x prometheus_*.deb .)
  mkdir -p "$unpacked"
  mv "$fresh/usr/bin/promtool" "$unpacked/promtool.$$" && mv "$unpacked/promtool.$$" "$promtool"
  rm -rf "$fresh"
fi
exec "$promtool" "$@"
