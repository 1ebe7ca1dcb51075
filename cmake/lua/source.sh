#!/usr/bin/env bash
# Fetches the distribution's own source of Lua, its fixes applied, and prints the folder. Kept in the cache
# folder by version, so that it is fetched once, and again when the distribution has a new one.
#
# Nothing of the machine changes: apt reads lists of our own, made of those the machine has, with the
# sources of packages in place of packages.
set -euo pipefail

say() { echo "lua: $*" >&2; }

# Of the source: a package that was only built again has a version of its own.
version=$(dpkg-query -W -f '${source:Version}' liblua5.4-dev 2>/dev/null) || {
  say "liblua5.4-dev is not installed, which says what version it is to be: run tools/deps.sh"
  exit 1
}
cache=${MOONLOOP_CACHE:-${HOME:-/root}/.cache/moonloop}/lua
kept=$cache/$version
if [ -f "$kept/src/lstate.c" ]; then
  echo "$kept"
  exit
fi

mkdir -p "$cache"
exec 9>"$cache/lock" # several builds may want it at once
flock 9
if [ -f "$kept/src/lstate.c" ]; then
  echo "$kept"
  exit
fi
command -v dpkg-source >/dev/null || { say "dpkg-source is missing: run tools/deps.sh"; exit 1; }

work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/parts" "$work/lists/partial" "$work/source"

# The machine's own entries: one line each, and in paragraphs.
: >"$work/sources.list"
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
  [ ! -f "$list" ] || sed -n 's/^[[:space:]]*deb[[:space:]]/deb-src /p' "$list" >>"$work/sources.list"
done
for list in /etc/apt/sources.list.d/*.sources; do
  [ ! -f "$list" ] || sed 's/^Types:.*/Types: deb-src/' "$list" >"$work/parts/$(basename "$list")"
done

apt() { # COMMAND…
  apt-get -qq -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts="$work/parts" \
    -o Dir::State::Lists="$work/lists" -o Dir::Cache::pkgcache="" -o Dir::Cache::srcpkgcache="" \
    -o APT::Sandbox::User="$(id -un)" -o APT::Get::List-Cleanup=false "$@"
}

say "fetching the source of lua5.4 $version"
{
  apt update && cd "$work/source" && apt source "lua5.4=$version"
} >"$work/log" 2>&1 || {
  tail -n 20 "$work/log" >&2
  say "no source of lua5.4 $version; is liblua5.4-dev as new as the mirrors have it? (apt-get install liblua5.4-dev)"
  exit 1
}
unpacked=$(echo "$work"/source/*/src/lstate.c)
[ -f "$unpacked" ] || { say "apt-get source brought no src/lstate.c"; exit 1; }
rm -rf "$kept"
mv "${unpacked%/src/lstate.c}" "$kept"
echo "$kept"
