--- Written by tools/kinds; the notation is described in schema/notation.lua.
return {

  Eviction = [[
@kind
deleteOptions *meta.DeleteOptions #2
metadata meta.ObjectMeta #1
]],

  PodDisruptionBudget = [[
@kind
metadata meta.ObjectMeta #1
spec PodDisruptionBudgetSpec #2
status PodDisruptionBudgetStatus #3
]],

  PodDisruptionBudgetSpec = [[
maxUnavailable *IntOrString #3
minAvailable *IntOrString #1
selector *meta.LabelSelector patch:replace #2
unhealthyPodEvictionPolicy *string {AlwaysAllow|IfHealthyBudget} go:v1.UnhealthyPodEvictionPolicyType #4
]],

  PodDisruptionBudgetStatus = [[
conditions []meta.Condition map(type) patch:merge(type) #7
currentHealthy+ int32 #4
desiredHealthy+ int32 #5
disruptedPods {}meta.Time #2
disruptionsAllowed+ int32 #3
expectedPods+ int32 #6
observedGeneration int64 #1
]],

}
