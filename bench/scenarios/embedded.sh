# shellcheck shell=bash disable=SC2154
# The API server of `moonloop dev`, over TLS and within the process, and what stands on it.
scenario_embedded() {
  local runs=3 i
  [ "$quick" = no ] || runs=1
  for ((i = 0; i < runs; i++)); do
    dev_start
    record embedded.answered "$(until_answered)"
    record embedded.VmRSS.empty "$(status_kib "$dev_pid" VmRSS)"
    "$load" maps --kubeconfig "$work/dev.kubeconfig" --count 5000 --concurrency 1 | record_all embedded.tls1
    "$load" maps --kubeconfig "$work/dev.kubeconfig" --count 5000 --first 5000 --concurrency 16 |
      record_all embedded.tls16
    record embedded.VmRSS.full "$(status_kib "$dev_pid" VmRSS)"
    "$load" watchers --kubeconfig "$work/dev.kubeconfig" --count 3000 | record_all embedded.watchers
    "$load" webhook --kubeconfig "$work/dev.kubeconfig" --count 1000 | record_all embedded.webhook
    dev_stop
    alone
    with_pods
    in_process
    record embedded.test "$(seconds_of "$moonloop" test reconcilers/)"
    record embedded.demo "$(MOONLOOP=$moonloop seconds_of tools/demo.sh)"
  done
}

# Seconds from exec to the first answer.
until_answered() { awk -v exec="$dev_exec" '$1 == "at" { printf "%.4f", $2 - exec }' "$work/answered"; }

# An API server without controllers, as Go projects start one for each of their suites.
alone() {
  local i
  for ((i = 0; i < 5; i++)); do
    dev_start --controllers none
    record embedded.alone "$(until_answered)"
    dev_stop
  done
}

# Where the machine allows no namespaces, there is nothing to measure.
with_pods() {
  unshare -Urmn true 2>/dev/null || return 0
  dev_start --pod-network own --image load="$load"
  "$load" starts --kubeconfig "$work/dev.kubeconfig" --count 100 | record_all embedded.starts
  "$load" hops --kubeconfig "$work/dev.kubeconfig" --count 2000 | record_all embedded.hops
  "$load" changes --kubeconfig "$work/dev.kubeconfig" --count 10 | record_all embedded.changes
  dev_stop
}

seconds_of() { # COMMAND…
  local begin=$EPOCHREALTIME
  "$@" >"$work/command.log" 2>&1 || die "$*: $(tail -n 1 "$work/command.log")"
  awk -v a="$begin" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.3f", b - a }'
}

in_process() {
  local hostlua=build/release/cluster/spec/hostlua/hostlua
  cmake --preset release >/dev/null
  cmake --build --preset release --target hostlua >/dev/null
  LUA_PATH='./?.lua;./?/init.lua;lua/?.lua;lua/?/init.lua;;' "$hostlua" bench/apiserver/inprocess.lua 20000 |
    awk '$2 ~ /^[0-9]+$/ && $3 == "a" { printf "%s\t%s\n", $1, $2 }' | record_all embedded.inprocess
  LUA_PATH='./?.lua;./?/init.lua;lua/?.lua;lua/?/init.lua;;' "$hostlua" bench/apiserver/rules.lua |
    record_all embedded.rules
  LUA_PATH='./?.lua;./?/init.lua;lua/?.lua;lua/?/init.lua;bench/apiserver/?.lua;;' "$hostlua" \
    bench/apiserver/crds.lua 300 | record_all embedded
}
