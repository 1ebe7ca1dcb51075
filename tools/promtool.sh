#!/usr/bin/env bash
# Runs promtool with these arguments: the one on PATH, or the one of the package promtool (Debian 13) or prometheus
# (Debian 12). The script unpacks the package once and does not install it: an installed one starts a server.
set -euo pipefail

unpacked=${MOONLOOP_CACHE:-${HOME:?}/.cache/moonloop}/promtool-distribution
promtool=$(command -v promtool || echo "$unpacked/promtool")

fetch() { apt-get -o APT::Sandbox::User=root -q download "$1" >&2; } # PACKAGE
fetch_either() { fetch promtool 2>/dev/null || fetch prometheus; }

if [ ! -x "$promtool" ]; then
  fresh=$(mktemp -d) # two callers may unpack at the same time
  trap 'rm -rf "$fresh"' EXIT
  (cd "$fresh" && { fetch_either || { apt-get update -qq >&2 && fetch_either; }; } && dpkg -x prom*.deb .)
  mkdir -p "$unpacked"
  mv "$fresh/usr/bin/promtool" "$unpacked/promtool.$$"
  mv "$unpacked/promtool.$$" "$promtool"
  rm -rf "$fresh"
fi
exec "$promtool" "$@"
