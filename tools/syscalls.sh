#!/usr/bin/env bash
# Lists the system calls that `moonloop run` makes while specs run, and the ones that its filter (host/operator/lockdown.c)
# refuses. Needs strace. Prints a line for each call with its count, and an `!` where the answer was EPERM, ENOSYS or the
# end of the process; exits with 1 when one of these is not known below.
#
#   tools/syscalls.sh COMMAND…     a command that runs $MOONLOOP, the release build unless it is set:
#     tools/syscalls.sh busted --lua=lua5.4 spec/host/connection_spec.lua
#     SERVER=embedded tools/syscalls.sh spec/e2e/run.sh spec/e2e/lifecycle_spec.lua
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || { sed -n '2,/^set/s/^# \?//p' "$0" >&2; exit 2; }
command -v strace >/dev/null || { echo "syscalls: install strace" >&2; exit 2; }

traces=$(mktemp -d -t moonloop-syscalls.XXXXXX)
trap 'rm -rf "$traces"' EXIT
binary=$(realpath "${MOONLOOP:-build/release/moonloop}")

# Only `run` locks itself down. Earlier calls do not count: the evaluation begins behind the last line that installs a
# filter.
cat >"$traces/moonloop" <<END
#!/bin/sh
[ "\$1" = run ] || exec "$binary" "\$@"
exec strace -D -f -qq -e signal=none -o "$traces/\$\$.trace" "$binary" "\$@"
END
chmod +x "$traces/moonloop"

code=0
LUA_PATH="./?.lua;./?/init.lua;lua/?.lua;lua/?/init.lua;reconcilers/?.lua;;" MOONLOOP="$traces/moonloop" "$@" || code=$?

# The C library works without these: it uses clone instead of clone3, and no cache daemon of names.
known='^(clone3|socket)$'
awk -v known="$known" '
  FNR == 1 { locked = 0 }
  /SECCOMP_SET_MODE_FILTER/ { locked = 1; next }
  !locked { next }
  match($0, /^[0-9]+ +(<\.\.\. )?[a-z0-9_]+/) {
    name = substr($0, RSTART, RLENGTH)
    sub(/^[0-9]+ +(<\.\.\. )?/, "", name)
    if (!/ resumed>/) count[name]++
    if (/= -1 (EPERM|ENOSYS)/) refused[name]++
  }
  / killed by SIGSYS/ { print "! the process was ended by its filter: " $0; bad = 1 }
  END {
    for (name in count) {
      printf "%s %8d %s\n", refused[name] ? "!" : " ", count[name], name | "sort -k2nr"
      if (refused[name] && name !~ known) bad = 1
    }
    close("sort -k2nr")
    exit bad
  }' "$traces"/*.trace || code=1
exit "$code"
