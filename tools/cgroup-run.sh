#!/usr/bin/env bash
# Runs a command inside a cgroup of its own with the limits of a container, and writes the resources that it used to a file
# when it ends. SIGTERM and SIGINT go to the command; this script ends with its exit code.
#
#   tools/cgroup-run.sh MEMORY_BYTES CPU_MILLI REPORT COMMAND…
#
# Exit code 77: no cgroup can be made here (not root, or mounted read-only).
set -uo pipefail

memory_max=$1 cpu_milli=$2 report=$3
shift 3
period_us=100000
quota_us=$((cpu_milli * period_us / 1000))
name=moonloop-run-$$
root=/sys/fs/cgroup

put() { echo "$2" >"$1" 2>/dev/null; }

if [ -f "$root/cgroup.controllers" ]; then
  groups=("$root/$name")
  put "$root/cgroup.subtree_control" "+memory +cpu"
  mkdir "${groups[0]}" 2>/dev/null || exit 77
  put "${groups[0]}/memory.max" "$memory_max" && put "${groups[0]}/cpu.max" "$quota_us $period_us" ||
    { rmdir "${groups[0]}"; exit 77; }
else
  groups=("$root/memory/$name" "$root/cpu/$name")
  mkdir "${groups[@]}" 2>/dev/null || exit 77
  put "${groups[0]}/memory.limit_in_bytes" "$memory_max" && put "${groups[1]}/cpu.cfs_period_us" "$period_us" &&
    put "${groups[1]}/cpu.cfs_quota_us" "$quota_us" || { rmdir "${groups[@]}"; exit 77; }
fi

(
  for group in "${groups[@]}"; do
    echo "$BASHPID" >"$group/cgroup.procs" || exit 77
  done
  exec "$@"
) &
child=$!
trap 'kill -TERM $child 2>/dev/null' TERM INT
wait "$child"
code=$?
while kill -0 "$child" 2>/dev/null; do # a trap ended the wait
  wait "$child"
  code=$?
done

value() { # NAME FILE: a whole file
  [ ! -r "$2" ] || echo "$1=$(cat "$2")"
}
{
  value memory_peak "${groups[0]}/memory.max_usage_in_bytes"
  value memory_peak "${groups[0]}/memory.peak"
  cat "${groups[-1]}/cpu.stat" | tr ' ' '='
  grep -h oom_kill "${groups[0]}/memory.oom_control" "${groups[0]}/memory.events" 2>/dev/null | tr ' ' '='
} >"$report"
for group in "${groups[@]}"; do
  rmdir "$group" 2>/dev/null
done
exit "$code"
