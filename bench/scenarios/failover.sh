# shellcheck shell=bash disable=SC2154
# Two replicas with --leader-elect and the default times, one on warm standby: from the signal that ends the leader,
# SIGKILL or SIGTERM, until the other leads, and until an At that became due meanwhile has its pod.
scenario_failover() {
  local runs=5 how i
  [ "$quick" = no ] || runs=1
  cp_up
  "$load" namespace --name failover
  for how in KILL TERM; do
    for ((i = 0; i < runs; i++)); do
      failover_once "$how" "at-${how,,}-$i"
    done
  done
}

failover_once() { # SIGNAL AT
  local leader ended
  : >"$work/host.log"
  failover_replica
  leader=$host_pid
  disown "$leader" # or bash itself would report its death
  until_leads 1
  failover_replica
  host_settle
  ended=$EPOCHREALTIME
  kill "-$1" "$leader"
  sed "s/NAME/$2/" <<'AT' | "$cp/kubectl" create -n failover -f - >/dev/null
{"apiVersion": "cnat.programming-kubernetes.info/v1alpha1", "kind": "At", "metadata": {"name": "NAME"},
 "spec": {"schedule": "2026-07-03T02:00:00Z", "command": "echo YAY"}}
AT
  until_leads 2
  record_since "failover.$1.leads" "$ended"
  until "$cp/kubectl" get -n failover pod "$2-pod" >/dev/null 2>&1; do sleep 0.02; done
  record_since "failover.$1.pod" "$ended"
  while kill -0 "$leader" 2>/dev/null; do sleep 0.02; done
  host_stop
}

failover_replica() { host_start "$subject" --scripts reconcilers/cnat.lua --leader-elect --leader-election-namespace failover; }

until_leads() { # HOW MANY HAVE SAID SO
  until [ "$(grep -c '"msg":"leading"' "$work/host.log")" = "$1" ]; do sleep 0.005; done
}

record_since() { # FIGURE WHEN
  record "$1" "$(awk -v a="$2" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.3f", b - a }')"
}
