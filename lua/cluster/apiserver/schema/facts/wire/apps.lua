--- Written by tools/builtin-wire.lua; read by schema/protobuf.lua.
return {
  ControllerRevision = [[
    data=2 metadata=1 revision=3]],
  Deployment = [[
    metadata=1 spec=2 status=3]],
  DeploymentCondition = [[
    lastTransitionTime=7 lastUpdateTime=6 message=5 reason=4 status=2 type=1]],
  DeploymentSpec = [[
    minReadySeconds=5 paused=7 progressDeadlineSeconds=9 replicas=1 revisionHistoryLimit=6 selector=2
    strategy=4 template=3]],
  DeploymentStatus = [[
    availableReplicas=4 collisionCount=8 conditions=6 observedGeneration=1 readyReplicas=7 replicas=2
    terminatingReplicas=9 unavailableReplicas=5 updatedReplicas=3]],
  DeploymentStrategy = [[
    rollingUpdate=2 type=1]],
  ReplicaSet = [[
    metadata=1 spec=2 status=3]],
  ReplicaSetCondition = [[
    lastTransitionTime=3 message=5 reason=4 status=2 type=1]],
  ReplicaSetSpec = [[
    minReadySeconds=4 replicas=1 selector=2 template=3]],
  ReplicaSetStatus = [[
    availableReplicas=5 conditions=6 fullyLabeledReplicas=2 observedGeneration=3 readyReplicas=4
    replicas=1 terminatingReplicas=7]],
  RollingUpdateDeployment = [[
    maxSurge=2 maxUnavailable=1]],
  RollingUpdateStatefulSetStrategy = [[
    maxUnavailable=2 partition=1]],
  StatefulSet = [[
    metadata=1 spec=2 status=3]],
  StatefulSetCondition = [[
    lastTransitionTime=3 message=5 reason=4 status=2 type=1]],
  StatefulSetOrdinals = [[
    start=1]],
  StatefulSetPersistentVolumeClaimRetentionPolicy = [[
    whenDeleted=1 whenScaled=2]],
  StatefulSetSpec = [[
    minReadySeconds=9 ordinals=11 persistentVolumeClaimRetentionPolicy=10 podManagementPolicy=6
    replicas=1 revisionHistoryLimit=8 selector=2 serviceName=5 template=3 updateStrategy=7
    volumeClaimTemplates=4]],
  StatefulSetStatus = [[
    availableReplicas=11 collisionCount=9 conditions=10 currentReplicas=4 currentRevision=6
    observedGeneration=1 readyReplicas=3 replicas=2 updateRevision=7 updatedReplicas=5]],
  StatefulSetUpdateStrategy = [[
    rollingUpdate=2 type=1]],
}
