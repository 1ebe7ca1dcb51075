# shellcheck shell=bash disable=SC2154
# 1,000 Ats that are due already, from their creation to DONE, on a server and a host that are new.
scenario_lifecycles() {
  local runs=3 count=1000 i build
  [ "$quick" = no ] || runs=1
  for ((i = 0; i < runs; i++)); do
    for build in "${builds[@]}"; do lifecycles_once "$build" "$count"; done
  done
}

lifecycles_once() { # BUILD COUNT
  local host server began
  cp_up
  "$load" namespace --name lives
  host_start "$1" --scripts reconcilers/cnat.lua
  host_settle
  host=$(cpu_ms "$host_pid") server=$(cpu_ms "$(cp_pid kube-apiserver)") began=$EPOCHREALTIME
  "$load" ats --namespace lives --count "$2" --due 2026-01-01T00:00:00Z --concurrency 32 >/dev/null
  "$load" wait --audit "$cp/audit.log" --namespace lives --count "$2" --phase DONE
  record "life.$1.wall" "$(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f", b - a }')"
  host_settle
  record "life.$1.host_cpu" "$(awk -v ms="$(($(cpu_ms "$host_pid") - host))" -v n="$2" 'BEGIN { printf "%.3f", ms / n }')"
  record "life.$1.server_cpu" "$(awk -v ms="$(($(cpu_ms "$(cp_pid kube-apiserver)") - server))" -v n="$2" 'BEGIN { printf "%.2f", ms / n }')"
  record_memory "life.$1"
  host_stop
  writes_of lives "$2" writes.due
}
