--- Written by tools/kinds; the notation is described in schema/notation.lua.
return {

  APIGroup = [[
@kind
name! string #1
preferredVersion GroupVersionForDiscovery #3
serverAddressByClientCIDRs []ServerAddressByClientCIDR atomic #4
versions! []GroupVersionForDiscovery atomic #2
]],

  APIGroupList = [[
@kind
groups! []APIGroup atomic #1
]],

  APIResource = [[
categories []string atomic #7
group string #8
kind! string #3
name! string #1
namespaced! bool #2
shortNames []string atomic #5
singularName! string #6
storageVersionHash string #10
verbs! []string go:v1.Verbs #4
version string #9
]],

  APIResourceList = [[
@kind
groupVersion! string #1
resources! []APIResource atomic #2
]],

  APIVersions = [[
@kind
serverAddressByClientCIDRs! []ServerAddressByClientCIDR atomic #2
versions! []string atomic #1
]],

  Condition = [[
lastTransitionTime! Time #4
message! string #6
observedGeneration int64 #3
reason! string #5
status! string go:v1.ConditionStatus #2
type! string #1
]],

  DeleteOptions = [[
@kinds
apiVersion string
dryRun []string atomic #5
gracePeriodSeconds *int64 #1
ignoreStoreReadErrorWithClusterBreakingPotential *bool #6
kind string
orphanDependents *bool #3
preconditions *Preconditions #2
propagationPolicy *string go:v1.DeletionPropagation #4
]],

  FieldSelectorRequirement = [[
key! string #1
operator! string go:v1.FieldSelectorOperator #2
values []string atomic #3
]],

  FieldsV1 = [[@type object]],

  GroupVersionForDiscovery = [[
groupVersion! string #1
version! string #2
]],

  LabelSelector = [[
@atomic
matchExpressions []LabelSelectorRequirement atomic #2
matchLabels {}string #1
]],

  LabelSelectorRequirement = [[
key! string #1
operator! string go:v1.LabelSelectorOperator #2
values []string atomic #3
]],

  ListMeta = [[
continue string #3
remainingItemCount *int64 #4
resourceVersion string #2
selfLink string #1
shardInfo *ShardInfo #5
]],

  ManagedFieldsEntry = [[
apiVersion string #3
fieldsType string #6
fieldsV1 *FieldsV1 #7
manager string #1
operation string go:v1.ManagedFieldsOperationType #2
subresource string #8
time *Time #4
]],

  MicroTime = [[@type date-time]],

  ObjectMeta = [[
annotations {}string #12
creationTimestamp Time omitzero #8
deletionGracePeriodSeconds *int64 #10
deletionTimestamp *Time #9
finalizers []string set patch:merge #14
generateName string #2
generation int64 #7
labels {}string #11
managedFields []ManagedFieldsEntry atomic #17
name string #1
namespace string #3
ownerReferences []OwnerReference map(uid) patch:merge(uid) #13
resourceVersion string #6
selfLink string #4
uid string go:types.UID #5
]],

  OwnerReference = [[
@atomic
apiVersion! string #5
blockOwnerDeletion *bool #7
controller *bool #6
kind! string #1
name! string #3
uid! string go:types.UID #4
]],

  Patch = [[@type object]],

  Preconditions = [[
resourceVersion *string #2
uid *string go:types.UID #1
]],

  ServerAddressByClientCIDR = [[
clientCIDR! string #1
serverAddress! string #2
]],

  ShardInfo = [[selector! string #1]],

  Status = [[
@kind
code int32 #6
details *StatusDetails #5
message string #3
metadata ListMeta #1
reason string go:v1.StatusReason #4
status string #2
]],

  StatusCause = [[
field string #3
message string #2
reason string go:v1.CauseType #1
]],

  StatusDetails = [[
causes []StatusCause atomic #4
group string #2
kind string #3
name string #1
retryAfterSeconds int32 #5
uid string go:types.UID #6
]],

  Time = [[@type date-time]],

  WatchEvent = [[
@kinds
object! RawExtension #2
type! string #1
]],

}
