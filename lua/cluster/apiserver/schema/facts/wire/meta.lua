--- Written by tools/builtin-wire.lua; read by schema/protobuf.lua.
return {
  APIGroup = [[
    name=1 preferredVersion=3 serverAddressByClientCIDRs=4 versions=2]],
  APIGroupList = [[
    groups=1]],
  APIResource = [[
    categories=7 group=8 kind=3 name=1 namespaced=2 shortNames=5 singularName=6 storageVersionHash=10
    verbs=4 version=9]],
  APIResourceList = [[
    groupVersion=1 resources=2]],
  APIVersions = [[
    serverAddressByClientCIDRs=2 versions=1]],
  Condition = [[
    lastTransitionTime=4 message=6 observedGeneration=3 reason=5 status=2 type=1]],
  DeleteOptions = [[
    dryRun=5 gracePeriodSeconds=1 ignoreStoreReadErrorWithClusterBreakingPotential=6 orphanDependents=3
    preconditions=2 propagationPolicy=4]],
  FieldSelectorRequirement = [[
    key=1 operator=2 values=3]],
  GroupVersionForDiscovery = [[
    groupVersion=1 version=2]],
  LabelSelector = [[
    matchExpressions=2 matchLabels=1]],
  LabelSelectorRequirement = [[
    key=1 operator=2 values=3]],
  ListMeta = [[
    continue=3 remainingItemCount=4 resourceVersion=2 selfLink=1 shardInfo=5]],
  ManagedFieldsEntry = [[
    apiVersion=3 fieldsType=6 fieldsV1=7 manager=1 operation=2 subresource=8 time=4]],
  ObjectMeta = [[
    annotations=12 creationTimestamp=8 deletionGracePeriodSeconds=10 deletionTimestamp=9 finalizers=14
    generateName=2 generation=7 labels=11 managedFields=17 name=1 namespace=3 ownerReferences=13
    resourceVersion=6 selfLink=4 uid=5]],
  OwnerReference = [[
    apiVersion=5 blockOwnerDeletion=7 controller=6 kind=1 name=3 uid=4]],
  Preconditions = [[
    resourceVersion=2 uid=1]],
  ServerAddressByClientCIDR = [[
    clientCIDR=1 serverAddress=2]],
  ShardInfo = [[
    selector=1]],
  Status = [[
    code=6 details=5 message=3 metadata=1 reason=4 status=2]],
  StatusCause = [[
    field=3 message=2 reason=1]],
  StatusDetails = [[
    causes=4 group=2 kind=3 name=1 retryAfterSeconds=5 uid=6]],
  WatchEvent = [[
    object=2 type=1]],
}
