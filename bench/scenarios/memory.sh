# shellcheck shell=bash disable=SC2154
# Resident memory with many objects in the cache, and what one more costs: Ats that wait for a
# day, then as many pods of theirs that have ended. Of a host that saw each of them come, and at each step
# of one that starts with all of them there. And what one more time zone costs a script.
scenario_memory() {
  local few=1000 many=10000
  [ "$quick" = no ] || many=2000
  record memory.few "$few"
  record memory.many "$many"
  cp_up
  "$load" namespace --name many
  host_start_counting --scripts reconcilers/cnat.lua
  memory_ats 0 "$few" ats_few
  memory_ats "$few" "$many" ats_many
  memory_pods 0 "$few" pods_few
  memory_pods "$few" "$many" pods_many
  host_stop
  memory_zones few 1
  memory_zones many 21
}

# A script that uses so many time zones while it loads, of those with large files.
memory_zones() { # FIGURE COUNT
  local names=(New_York Chicago Denver Los_Angeles Toronto Halifax St_Johns Winnipeg Vancouver Edmonton Havana Boise
    Detroit Goose_Bay Menominee Moncton Anchorage Juneau Glace_Bay Nome Sitka)
  {
    printf "assert(require 'moonloop.time'.zone 'America/%s')\n" "${names[@]:0:$2}"
    cat reconcilers/cnat.lua
  } >"$work/zones.lua"
  host_start_counting --scripts "$work/zones.lua"
  host_settle
  record "memory.zones.$1" "$(heap_bytes)"
  host_stop
}

memory_ats() { # FIRST END FIGURE
  "$load" ats --namespace many --first "$1" --count "$(($2 - $1))" --due +86400s --concurrency 32 >/dev/null
  "$load" wait --namespace many --count "$2" --phase PENDING --timeout 4m
  memory_take "$3"
}

memory_pods() { # FIRST END FIGURE
  "$load" pods --namespace many --first "$1" --count "$(($2 - $1))" --owned-by-ats --concurrency 32 >/dev/null
  "$load" wait --namespace many --count "$2" --resource pods --phase Succeeded --timeout 4m
  memory_take "$3"
}

# The second host has nothing to write, so it does not disturb the first.
memory_take() { # FIGURE
  local grown build
  host_settle
  record_memory "memory.grown.$1"
  record "memory.grown.$1.heap" "$(heap_bytes)"
  grown=$host_pid
  for build in "${builds[@]}"; do
    host_start "$build" --scripts reconcilers/cnat.lua
    host_settle
    record_memory "memory.$build.$1"
    host_stop
  done
  host_pid=$grown
}
