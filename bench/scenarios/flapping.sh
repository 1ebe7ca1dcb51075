# shellcheck shell=bash disable=SC2154,SC2034
# Not among the default ones: MINUTES (default 10) of an API server that is there for 5 s and gone for 5 s. Every
# second: descriptors, memory, probes; from the audit log: the lists of each kind after each outage. Fails when a bound is broken.
scenario_flapping() {
  local minutes=${MINUTES:-10} kubeconfig=$work/proxy.kubeconfig churn probes broken=()
  cp_up
  "$load" namespace --name flapping
  proxy_start --up 5s --down 5s
  probes=$(free_port)
  host_start "$subject" --scripts reconcilers/cnat.lua --health-probe-bind-address "127.0.0.1:$probes"
  "$load" ready --url "http://127.0.0.1:$probes/readyz" >/dev/null
  "$load" churn --namespace flapping --rate 2 --for "${minutes}m" --keep 60s >"$work/churn" &
  churn=$!
  "$load" observe --pid "$host_pid" --health "http://127.0.0.1:$probes" --for "${minutes}m" >"$work/observed"
  wait "$churn" || die 'the load ended badly'
  host_stop
  proxy_stop
  "$load" outages --audit "$cp/audit.log" --log "$work/proxy.log" >>"$work/observed"
  "$load" requests --audit "$cp/audit.log" >"$work/requests"
  cat "$work/churn" >>"$work/observed"
  record flapping.minutes "$minutes"
  record_all flapping <"$work/observed"
  record flapping.requests "$(of all <"$work/requests")"
  [ "$(of unfinished <"$work/churn")" = 0 ] || broken+=("$(of unfinished <"$work/churn") Ats were not DONE a minute after they were made")
  [ "$(of dead <"$work/observed")" = 0 ] || broken+=("/healthz was not 200 $(of dead <"$work/observed") times")
  [ "$(of lists_max <"$work/observed")" -le 1 ] || broken+=("$(of lists_max <"$work/observed") lists of a kind after an outage")
  [ "$(of fds_growth <"$work/observed")" -le 4 ] || broken+=('descriptors grew')
  [ "$(of rss_growth <"$work/observed")" -le 2048 ] || broken+=('memory grew')
  [ ${#broken[@]} = 0 ] || { cat "$work/observed" >&2; die "flapping: $(IFS=';'; echo "${broken[*]}")"; }
}
