--- Written by tools/builtin-schemas.lua; the notation is described in schema/notation.lua.
return {

  ControllerRevision = [[
@kind
data *RawExtension
metadata meta.ObjectMeta
revision! int64
]],

  Deployment = [[
@kind
metadata meta.ObjectMeta
spec DeploymentSpec
status DeploymentStatus
]],

  DeploymentCondition = [[
lastTransitionTime meta.Time
lastUpdateTime meta.Time
message string
reason string
status! string
type! string
]],

  DeploymentSpec = [[
minReadySeconds int32
paused bool
progressDeadlineSeconds int32
replicas int32
revisionHistoryLimit int32
selector! *meta.LabelSelector
strategy DeploymentStrategy patch:retainKeys
template! core.PodTemplateSpec
]],

  DeploymentStatus = [[
availableReplicas int32
collisionCount int32
conditions []DeploymentCondition map(type) patch:merge(type)
observedGeneration int64
readyReplicas int32
replicas int32
terminatingReplicas int32
unavailableReplicas int32
updatedReplicas int32
]],

  DeploymentStrategy = [[
rollingUpdate *RollingUpdateDeployment
type string {Recreate|RollingUpdate}
]],

  ReplicaSet = [[
@kind
metadata meta.ObjectMeta
spec ReplicaSetSpec
status ReplicaSetStatus
]],

  ReplicaSetCondition = [[
lastTransitionTime meta.Time
message string
reason string
status! string
type! string
]],

  ReplicaSetSpec = [[
minReadySeconds int32
replicas int32
selector! *meta.LabelSelector
template core.PodTemplateSpec
]],

  ReplicaSetStatus = [[
availableReplicas int32
conditions []ReplicaSetCondition map(type) patch:merge(type)
fullyLabeledReplicas int32
observedGeneration int64
readyReplicas int32
replicas! int32
terminatingReplicas int32
]],

  RollingUpdateDeployment = [[
maxSurge IntOrString
maxUnavailable IntOrString
]],

  RollingUpdateStatefulSetStrategy = [[
maxUnavailable IntOrString
partition int32
]],

  StatefulSet = [[
@kind
metadata meta.ObjectMeta
spec StatefulSetSpec
status StatefulSetStatus
]],

  StatefulSetCondition = [[
lastTransitionTime meta.Time
message string
reason string
status! string
type! string
]],

  StatefulSetOrdinals = "start int32 =0",

  StatefulSetPersistentVolumeClaimRetentionPolicy = [[
whenDeleted string
whenScaled string
]],

  StatefulSetSpec = [[
minReadySeconds int32
ordinals *StatefulSetOrdinals
persistentVolumeClaimRetentionPolicy *StatefulSetPersistentVolumeClaimRetentionPolicy
podManagementPolicy string {OrderedReady|Parallel}
replicas int32
revisionHistoryLimit int32
selector! *meta.LabelSelector
serviceName string =""
template! core.PodTemplateSpec
updateStrategy StatefulSetUpdateStrategy
volumeClaimTemplates []core.PersistentVolumeClaim atomic
]],

  StatefulSetStatus = [[
availableReplicas int32 =0
collisionCount int32
conditions []StatefulSetCondition map(type) patch:merge(type)
currentReplicas int32
currentRevision string
observedGeneration int64
readyReplicas int32
replicas! int32
updateRevision string
updatedReplicas int32
]],

  StatefulSetUpdateStrategy = [[
rollingUpdate *RollingUpdateStatefulSetStrategy
type string {OnDelete|RollingUpdate}
]],

}
