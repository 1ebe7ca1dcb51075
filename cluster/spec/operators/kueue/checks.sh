# shellcheck shell=bash disable=SC2034,SC2154 # run.sh has the other names
# kueue: its config/default, and a queue with room for one of two Jobs.
built=$(programs kueue)
module=$(sources kueue sigs.k8s.io/kueue)
versions="kueue $(version kueue sigs.k8s.io/kueue)"
images=(--image kueue="$built/kueue:/manager")

# job NAME: makes a suspended Job that asks for all of the queue's quota.
job() { sed "s/NAME/$1/" "$here/kueue/job.yaml" | kubectl apply -f -; }

# both: whether the second Job is suspended, and how many pods the first runs.
both() { printf '%s,%s' "$(get job second '{.spec.suspend}')" "$(get job first '{.status.active}')"; }

# in_turn: the second Job started when the first was done, not before.
in_turn() {
  local first second
  first=$(get job first '{.status.completionTime}')
  second=$(get job second '{.status.startTime}')
  echo "the first was done at $first, the second started at $second"
  [ -n "$first" ] && [[ ! $second < $first ]]
}

checks() {
  check "its config/default is applied" 0 kubectl apply --server-side -k "$module/config/default"
  check "the manager is available" 90 is True get deployment -n kueue-system kueue-controller-manager \
    '{.status.conditions[?(@.type=="Available")].status}'
  check "a flavor, a ClusterQueue and a LocalQueue are applied" 0 kubectl apply -f "$here/kueue/queues.yaml"
  check "the ClusterQueue is active" 30 is True get clusterqueue all '{.status.conditions[?(@.type=="Active")].status}'
  check "a ClusterQueue with a negative quota is refused by its webhook" 0 refused \
    'admission webhook "vclusterqueue.kb.io" denied the request' \
    kubectl patch clusterqueue all --type json \
    -p '[{"op":"replace","path":"/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota","value":"-1"}]'
  check "a suspended Job is made" 0 job first
  check "it is admitted, and runs" 30 is false,1 get job first '{.spec.suspend},{.status.active}'
  check "a second Job is made" 0 job second
  check "it waits for quota" 30 has 'insufficient unused quota' get workloads \
    '{.items[?(@.metadata.ownerReferences[0].name=="second")].status.conditions[?(@.type=="QuotaReserved")].message}'
  check "it is still suspended while the first runs" 0 is true,1 both
  check "the first is done" 60 is 1 get job first '{.status.succeeded}'
  check "the second is done after it" 60 is 1 get job second '{.status.succeeded}'
  check "it started when the first was done" 0 in_turn
}
