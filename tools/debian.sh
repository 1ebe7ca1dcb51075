# shellcheck shell=bash
# Makes root file systems of Debian, from the mirrors of this machine. Other scripts source this file.

# debian_root RELEASE DIR [DEBOOTSTRAP'S OPTION…]: makes the smallest installation of that release (bookworm, trixie) in DIR,
# which must not exist. Its apt asks the mirrors of this machine, through its proxy. After a failure, DIR.log has the output
# of debootstrap. Needs root. Only debootstrap sees the mounts that it makes.
debian_root() {
  local release=$1 root=$2 sources mirror proxy=''
  shift 2
  sources=$(debian_sources "$release")
  mirror=$(awk -v release="$release" '$3 == release { print $2; exit }' <<<"$sources")
  [ -n "$mirror" ] || {
    echo "apt of this machine has no source of Debian: add one to /etc/apt" >"$root.log"
    return 1
  }
  eval "$(apt-config shell proxy Acquire::http::Proxy)"
  http_proxy=${http_proxy:-$proxy} unshare --mount --propagation private debootstrap --variant=minbase "$@" "$release" \
    "$root" "$mirror" >"$root.log" 2>&1 || return 1
  rm -f "$root.log"
  echo "$sources" >"$root/etc/apt/sources.list"
  apt-config dump | grep -E '^Acquire::(https?::|Check-)' >"$root/etc/apt/apt.conf.d/90machine" || true
  cp -r /etc/apt/auth.conf.d "$root/etc/apt/"
  if grep -q 'https:' <<<"$sources" && [ -x "$root/usr/sbin/update-ca-certificates" ]; then
    cp -r /usr/local/share/ca-certificates "$root/usr/local/share/"
    chroot "$root" update-ca-certificates >/dev/null
  fi
}

# debian_sources RELEASE: prints lines of a sources.list for that release, made from the sources of this machine:
# debootstrap alone would leave the release without later fixes. Other vendors' sources stay out.
debian_sources() {
  { debian_targets || { apt-get update -qq && debian_targets; }; } |
    sed "s/^\(deb [^ ]*\) [^ -]*/\1 $1/" | sort -u
}

debian_targets() {
  # shellcheck disable=SC2016 # apt's own placeholders
  apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' \
    "Architecture: $(dpkg --print-architecture)" | grep ' main$'
}
