--- Written by tools/kinds; the notation is described in schema/notation.lua.
return {

  CrossVersionObjectReference = [[
@atomic
apiVersion string #3
kind! string #1
name! string #2
]],

  HorizontalPodAutoscaler = [[
@kind
metadata meta.ObjectMeta #1
spec- HorizontalPodAutoscalerSpec #2
status HorizontalPodAutoscalerStatus #3
]],

  HorizontalPodAutoscalerSpec = [[
maxReplicas! int32 #3
minReplicas *int32 #2
scaleTargetRef! CrossVersionObjectReference #1
targetCPUUtilizationPercentage *int32 #4
]],

  HorizontalPodAutoscalerStatus = [[
currentCPUUtilizationPercentage *int32 #5
currentReplicas! int32 #3
desiredReplicas! int32 #4
lastScaleTime *meta.Time #2
observedGeneration *int64 #1
]],

  Scale = [[
@kind
metadata meta.ObjectMeta #1
spec ScaleSpec #2
status ScaleStatus #3
]],

  ScaleSpec = [[replicas int32 =0 #1]],

  ScaleStatus = [[
replicas! int32 #1
selector string #2
]],

}
