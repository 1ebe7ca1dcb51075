# shellcheck shell=bash disable=SC2154
# From exec to /readyz, and to the first pod's create at the server, of an At that was due before.
scenario_start() {
  local runs=10 i build
  [ "$quick" = no ] || runs=3
  cp_up
  for ((i = 0; i < runs; i++)); do
    for build in "${builds[@]}"; do
      start_to_pod "$build" "start-$build-$i"
      start_to_ready "$build"
    done
  done
}

start_to_pod() { # BUILD NAMESPACE
  "$load" namespace --name "$2"
  "$load" ats --namespace "$2" --count 1 --due 2026-01-01T00:00:00Z >/dev/null
  host_start "$1" --scripts reconcilers/cnat.lua
  "$load" wait --audit "$cp/audit.log" --namespace "$2" --count 1 --phase DONE
  host_stop
  record "start.$1.pod" "$("$load" first --audit "$cp/audit.log" --namespace "$2" --after "$host_exec" | of asked)"
}

start_to_ready() { # BUILD
  local port asker
  port=$(free_port)
  "$load" ready --url "http://127.0.0.1:$port/readyz" >"$work/ready" &
  asker=$!
  sleep 0.1
  host_start "$1" --scripts reconcilers/cnat.lua --health-probe-bind-address "127.0.0.1:$port"
  wait "$asker"
  record "start.$1.ready" "$(awk -v exec="$host_exec" '$1 == "at" { printf "%.4f", $2 - exec }' "$work/ready")"
  host_stop
}
