#!/usr/bin/env bash
# Installs what building, testing and linting need from the distribution's packages, and says
# what. Does nothing, in no time, when all of it is there.
#
#   tools/deps.sh            for everything but the specs that run PostgreSQL, MariaDB and Redis in pods
#   tools/deps.sh servers    those three. Once installed two of them run as services, so only a machine without a
#                            service manager, as a container is, gets them; of MariaDB it is the programs alone
set -euo pipefail

packages=(
  # to build
  build-essential ccache cmake ninja-build pkg-config dpkg-dev patch
  liblua5.4-dev libcurl4-openssl-dev libevent-dev libyaml-dev libssl-dev libzstd-dev libpcre2-dev zlib1g-dev
  # to test
  python3-venv libcmocka-dev nghttp2-server lua5.4 lua-busted lua-socket lua-sec lua-cjson openssl procps ca-certificates
  # to lint and to fuzz
  lua-check clang clang-format cppcheck shellcheck libclang-rt-14-dev
)
if [ "${1:-}" = servers ]; then
  [ ! -d /run/systemd/system ] || exit 0
  packages=(postgresql redis-server redis-tools mariadb-server-core mariadb-client-core)
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
  [ "$status" = "install ok installed" ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
  echo "moonloop: not a Debian system; install the equivalents of: ${missing[*]}" >&2
  exit 1
fi
sudo=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || { echo "moonloop: needs root or sudo to install: ${missing[*]}" >&2; exit 1; }
  sudo=(sudo)
fi
echo "moonloop: installing ${missing[*]}"
"${sudo[@]}" apt-get update -qq
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
