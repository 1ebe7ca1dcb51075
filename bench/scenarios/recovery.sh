# shellcheck shell=bash disable=SC2154,SC2034
# 200 Ats, 20 a second, each due soon: with nothing in the way, then with all connections cut every two seconds.
# From each cut to the operator's last watch asked for and to the next pod; and the requests of each run, next
# to the four changes that an At is worth: its pod, and its status PENDING, RUNNING, DONE.
scenario_recovery() {
  local runs=3 i
  [ "$quick" = no ] || runs=1
  for ((i = 0; i < runs; i++)); do
    recovery_once calm
    recovery_once cut
  done
}

recovery_once() { # calm|cut
  local count=200 kubeconfig=$work/proxy.kubeconfig every=2s
  [ "$1" = cut ] || every=1h
  cp_up
  "$load" namespace --name recovery
  proxy_start --up "$every" --down 0s
  host_start "$subject" --scripts reconcilers/cnat.lua
  host_settle
  "$load" churn --namespace recovery --rate 20 --for 10s --lead 1s >/dev/null
  # Not from the audit log: a create whose client has gone stands there as refused, and may have made its pod.
  "$load" wait --namespace recovery --count "$count" --phase DONE
  host_stop
  proxy_stop
  "$load" requests --audit "$cp/audit.log" >"$work/requests"
  record "recovery.$1.requests" "$(awk -v sent="$(of all <"$work/requests")" -v of="$((4 * count))" 'BEGIN { printf "%.3f", sent / of }')"
  [ "$1" = calm ] || "$load" outages --audit "$cp/audit.log" --log "$work/proxy.log" | record_all recovery.cut
}
