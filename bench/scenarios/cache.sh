# shellcheck shell=bash disable=SC2154
# Many pods of cnat cached: what one costs, what an event of one costs, and how late the operator is while
# they come. The server is a synthetic one (load stream), which costs less than the operator: a real one would
# be what is measured.
scenario_cache() {
  local many=100000 kubeconfig=$work/stream.kubeconfig
  [ "$quick" = no ] || many=20000
  record cache.many "$many"
  # Few pods of whom hardly any has an At there, many such, and with an At each: every event is a reconcile then.
  cache_once few 10000 1000 small
  cache_once many "$many" 1000 small
  cache_once owned "$many" "$many" small
  cache_once large 10000 1000 large
}

cache_once() { # FIGURE PODS ATS SHAPE
  local build
  for build in "${builds[@]}"; do
    stream_start "$2" "$3" "$4"
    host_start "$build" --scripts reconcilers/cnat.lua
    host_settle
    record_memory "cache.$build.$1"
    if [ "$build" = "$subject" ]; then cache_floods "$1" "$4"; fi
    host_stop
    stream_stop
  done
  stream_start "$2" "$3" "$4"
  host_start_counting --scripts reconcilers/cnat.lua
  host_settle
  record "cache.$1.heap" "$(heap_bytes)"
  host_stop
  stream_stop
}

# As fast as they are taken, and, of those that have a target, 20,000 a second.
cache_floods() { # FIGURE SHAPE
  local seconds=10
  [ "$quick" = no ] || seconds=3
  "$load" flood --kubeconfig "$kubeconfig" --pid "$host_pid" --count $((seconds * 20000)) | record_all "cache.$1.all"
  [ "$2" = small ] || return 0
  host_settle
  "$load" flood --kubeconfig "$kubeconfig" --pid "$host_pid" --rate 20000 --count $((seconds * 20000)) |
    record_all "cache.$1.20000"
}

stream_start() { # PODS ATS SHAPE
  rm -f "$kubeconfig"
  "$load" stream --kubeconfig "$kubeconfig" --pods "$1" --ats "$2" --shape "$3" &
  stream_pid=$!
  await_file "$kubeconfig" "$stream_pid"
}

stream_stop() { end_of "$stream_pid"; }
