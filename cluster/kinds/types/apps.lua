--- Written by tools/kinds; the notation is described in schema/notation.lua.
return {

  ControllerRevision = [[
@kind
data RawExtension #2
metadata meta.ObjectMeta #1
revision! int64 #3
]],

  DaemonSet = [[
@kind
metadata meta.ObjectMeta #1
spec DaemonSetSpec #2
status DaemonSetStatus #3
]],

  DaemonSetCondition = [[
lastTransitionTime meta.Time #3
message string #5
reason string #4
status! string go:v1.ConditionStatus #2
type! string go:v1.DaemonSetConditionType #1
]],

  DaemonSetSpec = [[
minReadySeconds int32 #4
revisionHistoryLimit *int32 #6
selector! *meta.LabelSelector #1
template! core.PodTemplateSpec #2
updateStrategy DaemonSetUpdateStrategy #3
]],

  DaemonSetStatus = [[
collisionCount *int32 #9
conditions []DaemonSetCondition map(type) patch:merge(type) #10
currentNumberScheduled! int32 #1
desiredNumberScheduled! int32 #3
numberAvailable int32 #7
numberMisscheduled! int32 #2
numberReady! int32 #4
numberUnavailable int32 #8
observedGeneration int64 #5
updatedNumberScheduled int32 #6
]],

  DaemonSetUpdateStrategy = [[
rollingUpdate *RollingUpdateDaemonSet #2
type string {OnDelete|RollingUpdate} go:v1.DaemonSetUpdateStrategyType #1
]],

  Deployment = [[
@kind
metadata meta.ObjectMeta #1
spec DeploymentSpec #2
status DeploymentStatus #3
]],

  DeploymentCondition = [[
lastTransitionTime meta.Time #7
lastUpdateTime meta.Time #6
message string #5
reason string #4
status! string go:v1.ConditionStatus #2
type! string go:v1.DeploymentConditionType #1
]],

  DeploymentSpec = [[
minReadySeconds int32 #5
paused bool #7
progressDeadlineSeconds *int32 #9
replicas *int32 #1
revisionHistoryLimit *int32 #6
selector! *meta.LabelSelector #2
strategy DeploymentStrategy patch:retainKeys #4
template! core.PodTemplateSpec #3
]],

  DeploymentStatus = [[
availableReplicas int32 #4
collisionCount *int32 #8
conditions []DeploymentCondition map(type) patch:merge(type) #6
observedGeneration int64 #1
readyReplicas int32 #7
replicas int32 #2
terminatingReplicas *int32 #9
unavailableReplicas int32 #5
updatedReplicas int32 #3
]],

  DeploymentStrategy = [[
rollingUpdate *RollingUpdateDeployment #2
type string {Recreate|RollingUpdate} go:v1.DeploymentStrategyType #1
]],

  ReplicaSet = [[
@kind
metadata meta.ObjectMeta #1
spec ReplicaSetSpec #2
status ReplicaSetStatus #3
]],

  ReplicaSetCondition = [[
lastTransitionTime meta.Time #3
message string #5
reason string #4
status! string go:v1.ConditionStatus #2
type! string go:v1.ReplicaSetConditionType #1
]],

  ReplicaSetSpec = [[
minReadySeconds int32 #4
replicas *int32 #1
selector! *meta.LabelSelector #2
template core.PodTemplateSpec #3
]],

  ReplicaSetStatus = [[
availableReplicas int32 #5
conditions []ReplicaSetCondition map(type) patch:merge(type) #6
fullyLabeledReplicas int32 #2
observedGeneration int64 #3
readyReplicas int32 #4
replicas! int32 #1
terminatingReplicas *int32 #7
]],

  RollingUpdateDaemonSet = [[
maxSurge *IntOrString #2
maxUnavailable *IntOrString #1
]],

  RollingUpdateDeployment = [[
maxSurge *IntOrString #2
maxUnavailable *IntOrString #1
]],

  RollingUpdateStatefulSetStrategy = [[
maxUnavailable *IntOrString #2
partition *int32 #1
]],

  StatefulSet = [[
@kind
metadata meta.ObjectMeta #1
spec StatefulSetSpec #2
status StatefulSetStatus #3
]],

  StatefulSetCondition = [[
lastTransitionTime meta.Time #3
message string #5
reason string #4
status! string go:v1.ConditionStatus #2
type! string go:v1.StatefulSetConditionType #1
]],

  StatefulSetOrdinals = [[start+ int32 #1]],

  StatefulSetPersistentVolumeClaimRetentionPolicy = [[
whenDeleted string go:v1.PersistentVolumeClaimRetentionPolicyType #1
whenScaled string go:v1.PersistentVolumeClaimRetentionPolicyType #2
]],

  StatefulSetSpec = [[
minReadySeconds int32 #9
ordinals *StatefulSetOrdinals #11
persistentVolumeClaimRetentionPolicy *StatefulSetPersistentVolumeClaimRetentionPolicy #10
podManagementPolicy string {OrderedReady|Parallel} go:v1.PodManagementPolicyType #6
replicas *int32 #1
revisionHistoryLimit *int32 #8
selector! *meta.LabelSelector #2
serviceName+ string #5
template! core.PodTemplateSpec #3
updateStrategy StatefulSetUpdateStrategy #7
volumeClaimTemplates []core.PersistentVolumeClaim atomic #4
]],

  StatefulSetStatus = [[
availableReplicas+ int32 #11
collisionCount *int32 #9
conditions []StatefulSetCondition map(type) patch:merge(type) #10
currentReplicas int32 #4
currentRevision string #6
observedGeneration int64 #1
readyReplicas int32 #3
replicas! int32 #2
updateRevision string #7
updatedReplicas int32 #5
]],

  StatefulSetUpdateStrategy = [[
rollingUpdate *RollingUpdateStatefulSetStrategy #2
type string {OnDelete|RollingUpdate} go:v1.StatefulSetUpdateStrategyType #1
]],

}
