# shellcheck shell=bash disable=SC2154
# The API server of `moonloop dev`, over TLS and within the process, and what stands on it.
scenario_embedded() {
  local runs=3 i
  [ "$quick" = no ] || runs=1
  for ((i = 0; i < runs; i++)); do
    dev_start
    record embedded.answered "$(awk -v exec="$dev_exec" '$1 == "at" { printf "%.4f", $2 - exec }' "$work/answered")"
    record embedded.VmRSS.empty "$(status_kib "$dev_pid" VmRSS)"
    "$load" maps --kubeconfig "$work/dev.kubeconfig" --count 5000 --concurrency 1 | record_all embedded.tls1
    "$load" maps --kubeconfig "$work/dev.kubeconfig" --count 5000 --first 5000 --concurrency 16 |
      record_all embedded.tls16
    record embedded.VmRSS.full "$(status_kib "$dev_pid" VmRSS)"
    "$load" watchers --kubeconfig "$work/dev.kubeconfig" --count 3000 | record_all embedded.watchers
    "$load" webhook --kubeconfig "$work/dev.kubeconfig" --count 1000 | record_all embedded.webhook
    dev_stop
    with_pods
    in_process
    record embedded.test "$(seconds_of "$moonloop" test reconcilers/)"
    record embedded.demo "$(MOONLOOP=$moonloop seconds_of tools/demo.sh)"
  done
}

# Where the machine allows no namespaces, there is nothing to measure.
with_pods() {
  unshare -Urmn true 2>/dev/null || return 0
  dev_start --pod-network own --image load="$load"
  "$load" starts --kubeconfig "$work/dev.kubeconfig" --count 100 | record_all embedded.starts
  "$load" hops --kubeconfig "$work/dev.kubeconfig" --count 2000 | record_all embedded.hops
  dev_stop
}

dev_start() { # OPTION…: without any, nothing runs pods
  [ $# -gt 0 ] || set -- --pods none
  rm -f "$work/dev.kubeconfig"
  dev_exec=$EPOCHREALTIME
  "$moonloop" dev "$@" --write-kubeconfig "$work/dev.kubeconfig" >"$work/dev.log" 2>&1 &
  dev_pid=$!
  "$load" answered --kubeconfig "$work/dev.kubeconfig" >"$work/answered"
}

dev_stop() {
  kill -INT "$dev_pid"
  wait "$dev_pid" || die "moonloop dev ended badly: $(tail -n 1 "$work/dev.log")"
}

seconds_of() { # COMMAND…
  local begin=$EPOCHREALTIME
  "$@" >"$work/command.log" 2>&1 || die "$*: $(tail -n 1 "$work/command.log")"
  awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.3f", b - a }'
}

# The release preset builds no interpreter of the host's own, so one is built beside it.
in_process() {
  if [ ! -x "$work/hostlua/spec/hostlua/hostlua" ]; then
    cmake -S . -B "$work/hostlua" -DCMAKE_BUILD_TYPE=Release -DMOONLOOP_EXTRAS=OFF >/dev/null
    cmake --build "$work/hostlua" --target hostlua >/dev/null 2>&1
  fi
  LUA_PATH='lua/?.lua;lua/?/init.lua;;' "$work/hostlua/spec/hostlua/hostlua" bench/apiserver/inprocess.lua 20000 |
    awk '$2 ~ /^[0-9]+$/ && $3 == "a" { printf "%s\t%s\n", $1, $2 }' | record_all embedded.inprocess
  LUA_PATH='lua/?.lua;lua/?/init.lua;;' "$work/hostlua/spec/hostlua/hostlua" bench/apiserver/rules.lua |
    record_all embedded.rules
  LUA_PATH='lua/?.lua;lua/?/init.lua;bench/apiserver/?.lua;;' "$work/hostlua/spec/hostlua/hostlua" \
    bench/apiserver/crds.lua 300 | record_all embedded
}
