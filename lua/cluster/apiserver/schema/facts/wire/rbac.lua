--- Written by tools/builtin-wire.lua; read by schema/protobuf.lua.
return {
  AggregationRule = [[
    clusterRoleSelectors=1]],
  ClusterRole = [[
    aggregationRule=3 metadata=1 rules=2]],
  ClusterRoleBinding = [[
    metadata=1 roleRef=3 subjects=2]],
  PolicyRule = [[
    apiGroups=2 nonResourceURLs=5 resourceNames=4 resources=3 verbs=1]],
  Role = [[
    metadata=1 rules=2]],
  RoleBinding = [[
    metadata=1 roleRef=3 subjects=2]],
  RoleRef = [[
    apiGroup=1 kind=2 name=3]],
  Subject = [[
    apiGroup=2 kind=1 name=3 namespace=4]],
}
