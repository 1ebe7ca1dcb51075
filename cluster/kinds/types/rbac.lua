--- Written by tools/kinds; the notation is described in schema/notation.lua.
return {

  AggregationRule = [[clusterRoleSelectors []meta.LabelSelector atomic #1]],

  ClusterRole = [[
@kind
aggregationRule *AggregationRule #3
metadata meta.ObjectMeta #1
rules+ []PolicyRule atomic #2
]],

  ClusterRoleBinding = [[
@kind
metadata meta.ObjectMeta #1
roleRef! RoleRef #3
subjects []Subject atomic #2
]],

  PolicyRule = [[
apiGroups []string atomic #2
nonResourceURLs []string atomic #5
resourceNames []string atomic #4
resources []string atomic #3
verbs! []string atomic #1
]],

  Role = [[
@kind
metadata meta.ObjectMeta #1
rules+ []PolicyRule atomic #2
]],

  RoleBinding = [[
@kind
metadata meta.ObjectMeta #1
roleRef! RoleRef #3
subjects []Subject atomic #2
]],

  RoleRef = [[
@atomic
apiGroup+ string #1
kind! string #2
name! string #3
]],

  Subject = [[
@atomic
apiGroup string #2
kind! string #1
name! string #3
namespace string #4
]],

}
