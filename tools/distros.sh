#!/usr/bin/env bash
# Runs the commands of the README on a fresh machine: a root file system that debootstrap makes, with git, make and
# ca-certificates, and a clone of this checkout's last commit in it. It runs the commands unchanged, twice:
#
#   whole   as on a machine of its own: processes, mounts, user namespaces; everything
#   bare    as an ordinary user where no user namespace can be made, without /sys and /dev/pts; of the tests only those
#           that start `moonloop dev`. Specs that such a machine cannot run are skipped and say why
#
#   tools/distros.sh                        Debian 12
#   tools/distros.sh trixie                 Debian 13
#   tools/distros.sh bookworm trixie        both, one after the other
#
# Ends with one line that adds everything up. Packages and compiled files are kept in the cache folder, so that the next run
# loads little. Mounts are made in namespaces that end with their last process: this machine itself gets no mount.
# Needs root, Linux namespaces and Debian's mirrors, and fails where one of them is missing.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
. tools/tally.sh
. tools/debian.sh

cache=${MOONLOOP_CACHE:-${HOME:?}/.cache/moonloop}
readonly cache place=$cache/distros
root='' running=''

say() { echo "distros: $*" >&2; }
fail() { say "$@"; exit 1; }

finish() {
  [ -z "$running" ] || { kill -KILL "$running" && wait "$running"; } 2>/dev/null # its namespaces end with it
  [ -z "$root" ] || rm -rf --one-file-system "$root" "$root.log"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# check_machine: ends with a message when this machine cannot run it.
check_machine() {
  [ "$(id -u)" = 0 ] || fail "needs root, to make a root file system: sudo make distros"
  unshare --mount --pid --fork --propagation private true 2>/dev/null ||
    fail "cannot make mount and process namespaces here: run it on a machine of its own, or in a container with CAP_SYS_ADMIN (docker run --privileged)"
  tools/deps.sh root || fail "cannot install debootstrap"
  mkdir -p "$place"
  exec 9>"$place/lock"
  flock --nonblock 9 || fail "another run uses $place; wait until it has ended"
  rm -rf --one-file-system "$place"/root.* # of a run that was killed
}

# make_root RELEASE: makes a fresh machine in $root, with a user and a clone in the user's home.
make_root() {
  local packages=$place/$1
  mkdir -p "$packages"
  root=$place/root.$1.$$
  debian_root "$1" "$root" --include=git,make,ca-certificates --cache-dir="$packages" || {
    tail -n 20 "$root.log" >&2
    fail "debootstrap cannot make $1: it needs a mirror of Debian, as in /etc/apt of this machine, or a proxy in http_proxy"
  }
  cp -L /etc/resolv.conf "$root/etc/resolv.conf"
  printf '127.0.0.1 localhost\n127.0.1.1 %s\n' "$(hostname)" >"$root/etc/hosts"
  chroot "$root" useradd --create-home --shell /bin/bash user
  chmod 755 "$root/home/user" # root works there, too, and in a namespace it is nobody else
  git clone --quiet --no-hardlinks . "$root/home/user/moonloop" || fail "cannot clone this checkout"
}

# enter whole|bare RELEASE LINE: runs a line of shell in $root's clone. Its mounts go with its namespace.
enter() {
  local code
  root=$root how=$1 line="cd /home/user/moonloop && $3" packages=$place/$2 ccache=$cache/ccache \
    unshare --mount --propagation private --pid --fork --kill-child bash -c '
    set -e
    mount --bind "$root" "$root"
    cd "$root"
    mount -t proc proc proc
    mount -t tmpfs -o mode=1777 tmpfs dev/shm
    set -- HOME=/home/user PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb \
      http_proxy="${http_proxy:-}" https_proxy="${https_proxy:-}" no_proxy="${no_proxy:-}" \
      CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=locale CCACHE_BASEDIR=/home/user/moonloop
    if [ "$how" = whole ]; then
      mkdir -p "$ccache" home/user/.cache/ccache
      mount --bind "$ccache" home/user/.cache/ccache
      mount --bind "$packages" var/cache/apt/archives
      mount --rbind /sys sys
      mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts dev/pts
      pivot_root . .
      umount --lazy .
      exec env -i "$@" sh -c "$line"
    fi
    # The kernel makes no user namespace for a process in a chroot.
    exec chroot --userspec=user . env -i "$@" sh -c "$line"' &
  running=$!
  wait "$running"
  code=$?
  running=''
  return "$code"
}

# step TITLE HOW RELEASE LINE: runs a line there, and adds the counts of its closing line, or the line itself.
step() {
  local out code printer
  echo "== $1"
  out=$(mktemp -t moonloop-distros.XXXXXX)
  exec {to}> >(tee "$out")
  printer=$!
  enter "${@:2}" >&"$to" 2>&1
  code=$?
  exec {to}>&-
  wait "$printer"
  if tally_closing "$out" "$code"; then
    :
  elif [ "$code" = 0 ]; then
    tally_add 1 0 0
  else
    echo "FAIL $1 (exit $code)"
    tally_add 0 1 0
  fi
  rm -f "$out"
  echo "== $1: exit code $code, after $SECONDS s"
}

# readme_commands: prints the commands of the README under "Try it", one a line.
readme_commands() {
  sed -n '/^## Try it$/,/^## /s/^    \(make [a-z-]*\).*/\1/p' README.md
}

# bare_suites: prints the suites that depend on user namespaces, terminals and root: specs that start `moonloop dev`, and its
# C units.
bare_suites() {
  { grep -l 'spec.host.support.dev"' spec/host/*_spec.lua; ls cluster/spec/unit/test_*.c; } |
    sed 's,cluster/spec/unit/test_\(.*\)\.c,build/asan/spec/unit/test_cluster_\1,' | tr '\n' ' '
}

try_release() { # RELEASE
  local release=$1 commands command
  mapfile -t commands < <(readme_commands)
  [ ${#commands[@]} -gt 1 ] || fail "README.md has no commands under \"Try it\""
  make_root "$release"
  echo "== $release: a fresh machine, after $SECONDS s"
  for command in "${commands[@]}"; do
    step "$release: $command" whole "$release" "$command"
  done
  enter whole "$release" "apt-get autoclean -qq" >/dev/null # packages that the mirror has newer ones of
  chroot "$root" chown -R user: /home/user
  for command in "${commands[@]}"; do
    [ "$command" != "make test" ] || command="$command ARGS='$(bare_suites)'"
    step "$release, a bare machine: $command" bare "$release" "$command"
  done
  rm -rf --one-file-system "$root"
  root=''
}

check_machine
[ $# -gt 0 ] || set -- bookworm
for release; do
  try_release "$release"
done
tally_end
