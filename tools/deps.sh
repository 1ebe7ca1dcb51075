#!/usr/bin/env bash
# Installs packages of the distribution, and lists them. When all of them are there, it ends at once. Debian 12 and 13
# have all of them under these names.
#
#   tools/deps.sh SET…
#
# Each target of make names its own sets, so that `make build` and `make demo` install a compiler and libraries alone.
#
#   build     to build the program
#   lua       for the Lua programs of tools/
#   test      for make test, and for all that builds with sanitizers
#   lint      for make lint and make format
#   e2e       for make e2e, make conformance and make operators, beside Go (spec/e2e/controlplane/README.md)
#   kubernetes  for make conformance-suite: programs that pods of Kubernetes' tests call
#   fuzz      for make fuzz
#   servers   for the specs that run PostgreSQL, MariaDB and Redis in pods. Two of the packages start services, so
#             only a machine without a service manager, such as a container, gets them
#   root      to make a root file system of Debian: make distros
#   image     to build the image where no container engine runs
set -euo pipefail

# packages SET: one a line. PACKAGE:PROGRAM is installed only where nobody has put that program on PATH: people have
# kubectl from elsewhere, and two packages with one file do not go together.
packages() {
  case $1 in
    build) printf '%s\n' build-essential ccache cmake pkg-config dpkg-dev patch liblua5.4-dev \
      libcurl4-openssl-dev libevent-dev libyaml-dev libssl-dev libzstd-dev libre2-dev zlib1g-dev ;;
    lua) printf '%s\n' lua5.4 ;;
    test) printf '%s\n' libcmocka-dev lua5.4 lua-busted lua-socket lua-sec lua-cjson nghttp2-server openssl curl \
      kubernetes-client:kubectl iproute2 procps ca-certificates tzdata ;;
    lint) printf '%s\n' lua5.4 lua-check clang-format cppcheck shellcheck ;;
    e2e) printf '%s\n' python3-venv openssl curl iproute2 procps ca-certificates ;;
    kubernetes) printf '%s\n' bind9-dnsutils netcat-openbsd ;;
    fuzz) printf '%s\n' clang libclang-rt-dev ;;
    servers) [ -d /run/systemd/system ] || printf '%s\n' postgresql redis-server redis-tools mariadb-server-core \
      mariadb-client-core ;;
    root) printf '%s\n' debootstrap ;;
    image) printf '%s\n' buildah debootstrap ;;
    *)
      echo "deps: no such set of packages: $1; tools/deps.sh lists them at its head" >&2
      exit 2
      ;;
  esac
}

[ $# -gt 0 ] || { echo "usage: tools/deps.sh SET…; the head of that file lists the sets" >&2; exit 2; }
names=$(for set in "$@"; do packages "$set"; done)
mapfile -t wanted < <(awk 'NF && !seen[$0]++' <<<"$names")

missing=()
for entry in "${wanted[@]}"; do
  package=${entry%%:*}
  [[ $entry != *:* ]] || ! command -v "${entry#*:}" >/dev/null || continue
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
