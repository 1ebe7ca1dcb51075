--- Written by tools/kinds; the notation is described in schema/notation.lua.
return {

  ContainerResourceMetricSource = [[
container! string #3
name! string go:v1.ResourceName #1
target! MetricTarget #2
]],

  ContainerResourceMetricStatus = [[
container! string #3
current! MetricValueStatus #2
name! string go:v1.ResourceName #1
]],

  CrossVersionObjectReference = [[
apiVersion string #3
kind! string #1
name! string #2
]],

  ExternalMetricSource = [[
metric! MetricIdentifier #1
target! MetricTarget #2
]],

  ExternalMetricStatus = [[
current! MetricValueStatus #2
metric! MetricIdentifier #1
]],

  HPAScalingPolicy = [[
periodSeconds! int32 #3
type! string go:v2.HPAScalingPolicyType #1
value! int32 #2
]],

  HPAScalingRules = [[
policies []HPAScalingPolicy atomic #2
selectPolicy *string go:v2.ScalingPolicySelect #1
stabilizationWindowSeconds *int32 #3
tolerance *Quantity #4
]],

  HorizontalPodAutoscaler = [[
@kind
metadata meta.ObjectMeta #1
spec- HorizontalPodAutoscalerSpec #2
status HorizontalPodAutoscalerStatus #3
]],

  HorizontalPodAutoscalerBehavior = [[
scaleDown *HPAScalingRules #2
scaleUp *HPAScalingRules #1
]],

  HorizontalPodAutoscalerCondition = [[
lastTransitionTime meta.Time #3
message string #5
reason string #4
status! string go:v1.ConditionStatus #2
type! string go:v2.HorizontalPodAutoscalerConditionType #1
]],

  HorizontalPodAutoscalerSpec = [[
behavior *HorizontalPodAutoscalerBehavior #5
maxReplicas! int32 #3
metrics []MetricSpec atomic #4
minReplicas *int32 #2
scaleTargetRef! CrossVersionObjectReference #1
]],

  HorizontalPodAutoscalerStatus = [[
conditions []HorizontalPodAutoscalerCondition map(type) patch:merge(type) #6
currentMetrics+ []MetricStatus atomic #5
currentReplicas int32 #3
desiredReplicas! int32 #4
lastScaleTime *meta.Time #2
observedGeneration *int64 #1
]],

  MetricIdentifier = [[
name! string #1
selector *meta.LabelSelector #2
]],

  MetricSpec = [[
containerResource *ContainerResourceMetricSource #7
external *ExternalMetricSource #5
object *ObjectMetricSource #2
pods *PodsMetricSource #3
resource *ResourceMetricSource #4
type! string go:v2.MetricSourceType #1
]],

  MetricStatus = [[
containerResource *ContainerResourceMetricStatus #7
external *ExternalMetricStatus #5
object *ObjectMetricStatus #2
pods *PodsMetricStatus #3
resource *ResourceMetricStatus #4
type! string go:v2.MetricSourceType #1
]],

  MetricTarget = [[
averageUtilization *int32 #4
averageValue *Quantity #3
type! string go:v2.MetricTargetType #1
value *Quantity #2
]],

  MetricValueStatus = [[
averageUtilization *int32 #3
averageValue *Quantity #2
value *Quantity #1
]],

  ObjectMetricSource = [[
describedObject! CrossVersionObjectReference #1
metric! MetricIdentifier #3
target! MetricTarget #2
]],

  ObjectMetricStatus = [[
current! MetricValueStatus #2
describedObject! CrossVersionObjectReference #3
metric! MetricIdentifier #1
]],

  PodsMetricSource = [[
metric! MetricIdentifier #1
target! MetricTarget #2
]],

  PodsMetricStatus = [[
current! MetricValueStatus #2
metric! MetricIdentifier #1
]],

  ResourceMetricSource = [[
name! string go:v1.ResourceName #1
target! MetricTarget #2
]],

  ResourceMetricStatus = [[
current! MetricValueStatus #2
name! string go:v1.ResourceName #1
]],

}
