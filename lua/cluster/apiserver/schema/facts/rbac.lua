--- Written by tools/builtin-schemas.lua; the notation is described in schema/notation.lua.
return {

  AggregationRule = "clusterRoleSelectors []meta.LabelSelector atomic",

  ClusterRole = [[
@kind
aggregationRule *AggregationRule
metadata meta.ObjectMeta
rules []PolicyRule atomic
]],

  ClusterRoleBinding = [[
@kind
metadata meta.ObjectMeta
roleRef! RoleRef
subjects []Subject atomic
]],

  PolicyRule = [[
apiGroups []string atomic
nonResourceURLs []string atomic
resourceNames []string atomic
resources []string atomic
verbs! []string atomic
]],

  Role = [[
@kind
metadata meta.ObjectMeta
rules []PolicyRule atomic
]],

  RoleBinding = [[
@kind
metadata meta.ObjectMeta
roleRef! RoleRef
subjects []Subject atomic
]],

  RoleRef = [[
@atomic
apiGroup string =""
kind! string
name! string
]],

  Subject = [[
@atomic
apiGroup string
kind! string
name! string
namespace string
]],

}
