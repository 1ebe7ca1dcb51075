# shellcheck shell=bash disable=SC2154
# 200 Ats due in the same second: how late each pod is with cnat alone, and with the worst script of each kind that we
# know at work in the same process (spec/e2e/fixtures/hostile). Pairs, in turn the one and the other first.
scenario_hostile() {
  local pairs=3 i
  [ "$quick" = no ] || pairs=1
  cp_up
  "$cp/kubectl" apply -f spec/e2e/fixtures/widgets.yaml >/dev/null
  KUBECTL=$cp/kubectl spec/e2e/established.sh crd/widgets.e2e.moonloop.dev >/dev/null
  for ((i = 0; i < pairs; i++)); do
    if [ $((i % 2)) = 0 ]; then
      hostile_run alone "$i"
      hostile_run beside "$i"
    else
      hostile_run beside "$i"
      hostile_run alone "$i"
    fi
  done
}

hostile_run() { # alone|beside NUMBER
  local namespace=hostile-$1-$2 due scripts=(--scripts reconcilers/cnat.lua) index
  "$load" namespace --name "$namespace"
  if [ "$1" = beside ]; then
    scripts+=(--scripts spec/e2e/fixtures/hostile)
    for index in $(seq 30); do
      printf -- '---\n{apiVersion: e2e.moonloop.dev/v1, kind: Widget, metadata: {name: widget-%d}, spec: {}}\n' "$index"
    done | "$cp/kubectl" apply -n "$namespace" -f - >/dev/null
  fi
  host_start "$subject" "${scripts[@]}"
  sleep 2 # they are all at it now; they never settle
  due=$("$load" ats --namespace "$namespace" --count 200 --due +6s | of due)
  "$load" wait --audit "$cp/audit.log" --namespace "$namespace" --count 200 --phase DONE
  record "hostile.$1.cpu" "$(cpu_ms "$host_pid")"
  host_stop
  "$cp/kubectl" delete widgets -n "$namespace" --all --wait=false >/dev/null 2>&1 || true
  lateness_of "$namespace" 200 "$due" "hostile.$1"
}
