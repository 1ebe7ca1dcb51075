--- Written by tools/builtin-schemas.lua; the notation is described in schema/notation.lua.
return {

  APIGroup = [[
@kind
name! string
preferredVersion GroupVersionForDiscovery
serverAddressByClientCIDRs []ServerAddressByClientCIDR atomic
versions! []GroupVersionForDiscovery atomic
]],

  APIGroupList = [[
@kind
groups! []APIGroup atomic
]],

  APIResource = [[
categories []string atomic
group string
kind! string
name! string
namespaced! bool
shortNames []string atomic
singularName! string
storageVersionHash string
verbs! []string
version string
]],

  APIResourceList = [[
@kind
groupVersion! string
resources! []APIResource atomic
]],

  APIVersions = [[
@kind
serverAddressByClientCIDRs! []ServerAddressByClientCIDR atomic
versions! []string atomic
]],

  Condition = [[
lastTransitionTime! Time
message! string
observedGeneration int64
reason! string
status! string
type! string
]],

  DeleteOptions = [[
@kinds
apiVersion string
dryRun []string atomic
gracePeriodSeconds int64
ignoreStoreReadErrorWithClusterBreakingPotential bool
kind string
orphanDependents bool
preconditions *Preconditions
propagationPolicy string
]],

  FieldSelectorRequirement = [[
key! string
operator! string
values []string atomic
]],

  FieldsV1 = "@type object",

  GroupVersionForDiscovery = [[
groupVersion! string
version! string
]],

  LabelSelector = [[
@atomic
matchExpressions []LabelSelectorRequirement atomic
matchLabels {}string
]],

  LabelSelectorRequirement = [[
key! string
operator! string
values []string atomic
]],

  ListMeta = [[
continue string
remainingItemCount int64
resourceVersion string
selfLink string
shardInfo *ShardInfo
]],

  ManagedFieldsEntry = [[
apiVersion string
fieldsType string
fieldsV1 *FieldsV1
manager string
operation string
subresource string
time Time
]],

  MicroTime = "@type date-time",

  ObjectMeta = [[
annotations {}string
creationTimestamp Time
deletionGracePeriodSeconds int64
deletionTimestamp Time
finalizers []string set patch:merge
generateName string
generation int64
labels {}string
managedFields []ManagedFieldsEntry atomic
name string
namespace string
ownerReferences []OwnerReference map(uid) patch:merge(uid)
resourceVersion string
selfLink string
uid string
]],

  OwnerReference = [[
@atomic
apiVersion! string
blockOwnerDeletion bool
controller bool
kind! string
name! string
uid! string
]],

  Patch = "@type object",

  Preconditions = [[
resourceVersion string
uid string
]],

  ServerAddressByClientCIDR = [[
clientCIDR! string
serverAddress! string
]],

  ShardInfo = "selector! string",

  Status = [[
@kind
code int32
details *StatusDetails
message string
metadata ListMeta
reason string
status string
]],

  StatusCause = [[
field string
message string
reason string
]],

  StatusDetails = [[
causes []StatusCause atomic
group string
kind string
name string
retryAfterSeconds int32
uid string
]],

  Time = "@type date-time",

  WatchEvent = [[
@kinds
object! *RawExtension
type! string
]],

}
