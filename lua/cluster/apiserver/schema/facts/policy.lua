--- Written by tools/builtin-schemas.lua; the notation is described in schema/notation.lua.
return {

  Eviction = [[
@kind
deleteOptions *meta.DeleteOptions
metadata meta.ObjectMeta
]],

  PodDisruptionBudget = [[
@kind
metadata meta.ObjectMeta
spec PodDisruptionBudgetSpec
status PodDisruptionBudgetStatus
]],

  PodDisruptionBudgetSpec = [[
maxUnavailable IntOrString
minAvailable IntOrString
selector *meta.LabelSelector patch:replace
unhealthyPodEvictionPolicy string {AlwaysAllow|IfHealthyBudget}
]],

  PodDisruptionBudgetStatus = [[
conditions []meta.Condition map(type) patch:merge(type)
currentHealthy int32 =0
desiredHealthy int32 =0
disruptedPods {}meta.Time
disruptionsAllowed int32 =0
expectedPods int32 =0
observedGeneration int64
]],

}
