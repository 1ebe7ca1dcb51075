# shellcheck shell=bash disable=SC2154
# Memory of one process that runs the three operators of reconcilers/, with 1,000 objects of each kind and all that belongs
# to them (RedisClusters of one server, the others like their samples): of a host that saw each of them come, and of one that
# starts with all of them there. On the API server of `moonloop dev`, whose pods are fake: a host does not hold more with a
# real one.
scenario_operators() {
  local count=1000 kubeconfig=$work/dev.kubeconfig build file
  [ "$quick" = no ] || count=100
  mkdir "$work/operators"
  for file in database database_parts database_engines rediscluster tenant; do
    cp "reconcilers/$file.lua" "$work/operators"
  done
  dev_start --pods fake --max-pods 10000 --apply crds --apply crds/samples/tenant.yaml
  operators_start "$subject"
  operators_make "$count" apis/cache.example.com/v1/namespaces/default/redisclusters '"cache.example.com/v1"' \
    RedisCluster '{"size":1}'
  operators_make "$count" apis/stable.example.com/v1/namespaces/default/databases '"stable.example.com/v1"' Database \
    '{"engine":"PostgreSQL","version":"14","size":"20Gi","users":[{"username":"admin"},{"username":"appuser"}]}'
  operators_make "$count" apis/platform.example.com/v1/tenants '"platform.example.com/v1"' Tenant \
    '{"tier":"bronze","admins":["alice"],"viewers":["bob","carol"]}'
  host_settle
  record operators.count "$count"
  record_memory operators.grown
  record operators.grown.cpu "$(cpu_ms "$host_pid")"
  host_stop
  for build in "${builds[@]}"; do
    operators_start "$build"
    host_settle
    record_memory "operators.$build"
    host_stop
  done
  dev_stop
}

operators_start() { # BUILD
  host_start "$1" --scripts "$work/operators" --allow-http https://accounts.example.com
}

# Each kind has names of its own: two owners of one StatefulSet would be an error.
operators_make() { # COUNT PATH VERSION KIND SPEC
  echo "{\"apiVersion\":$3,\"kind\":\"$4\",\"metadata\":{\"name\":\"${4,,}-NAME\"},\"spec\":$5}" >"$work/pattern.json"
  "$load" objects --kubeconfig "$kubeconfig" --path "/$2" --count "$1" --pattern "$work/pattern.json"
  "$load" objects --kubeconfig "$kubeconfig" --path "/$2" --count "$1" --wait || die "not all of $2 became ready"
}
