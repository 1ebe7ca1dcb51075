# shellcheck shell=bash disable=SC2034,SC2154 # run.sh has the other names
# prometheus-operator: its bundle, and a Prometheus that scrapes the operator and gets its rules from it.
built=$(programs prometheus-operator)
prometheus_built=$(programs prometheus)
module=$(sources prometheus-operator github.com/prometheus-operator/prometheus-operator)
versions="prometheus-operator $(version prometheus-operator github.com/prometheus-operator/prometheus-operator), Prometheus \
$(version prometheus github.com/prometheus/prometheus) (the version of its Go module)"
images=(--image prometheus-operator="$built/operator" --image prometheus-config-reloader="$built/prometheus-config-reloader"
  --image prometheus="$prometheus_built/prometheus")

# prometheus PATH: what the Prometheus answers, by way of the API server and its Service.
prometheus() { kubectl get --raw "/api/v1/namespaces/default/services/prometheus-operated:web/proxy/api/v1/$1"; }

# rule EXPRESSION: writes the rule of rule.yaml with it.
rule() { sed "s/EXPRESSION/$1/" "$here/prometheus-operator/rule.yaml" | kubectl apply -f -; }

checks() {
  check "its bundle is applied" 0 kubectl apply --server-side -f "$module/bundle.yaml"
  check "the operator is available" 60 is True get deployment prometheus-operator '{.status.conditions[?(@.type=="Available")].status}'
  check "the examples' rights of a Prometheus, and the operator's own ServiceMonitor are applied" 0 kubectl apply \
    -f "$module/example/rbac/prometheus/prometheus-service-account.yaml" \
    -f "$module/example/rbac/prometheus/prometheus-cluster-role.yaml" \
    -f "$module/example/rbac/prometheus/prometheus-cluster-role-binding.yaml" \
    -f "$module/example/rbac/prometheus-operator/prometheus-operator-service-monitor.yaml"
  check "a Prometheus is applied" 0 kubectl apply -f "$here/prometheus-operator/prometheus.yaml"
  check "it is available" 90 is True get prometheus main '{.status.conditions[?(@.type=="Available")].status}'
  check "it scrapes the operator" 90 has '"health":"up"' prometheus 'targets?state=active'
  check "a rule is written" 0 rule 'vector(1)'
  check "Prometheus has it" 60 has 'vector(1)' prometheus rules
  check "the rule is changed" 0 rule 'vector(2)'
  check "Prometheus has the changed rule" 60 has 'vector(2)' prometheus rules
  check "a second replica is asked for" 0 kubectl patch prometheus main --type merge -p '{"spec":{"replicas":2}}'
  check "both are available" 90 is 2 get prometheus main '{.status.availableReplicas}'
  check "the Prometheus is deleted" 0 kubectl delete prometheus main
  check "its pods go" 60 is '' kubectl get pods -l prometheus=main -o name
}
