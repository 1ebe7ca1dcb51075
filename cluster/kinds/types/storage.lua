--- Written by tools/kinds; the notation is described in schema/notation.lua.
return {

  CSIDriver = [[
@kind
metadata meta.ObjectMeta #1
spec! CSIDriverSpec #2
]],

  CSIDriverSpec = [[
attachRequired *bool #1
fsGroupPolicy *string go:v1.FSGroupPolicy #5
nodeAllocatableUpdatePeriodSeconds *int64 #9
podInfoOnMount *bool #2
preventPodSchedulingIfMissing *bool #11
requiresRepublish *bool #7
seLinuxMount *bool #8
serviceAccountTokenInSecrets *bool #10
storageCapacity *bool #4
tokenRequests []TokenRequest atomic #6
volumeLifecycleModes []string set go:[]v1.VolumeLifecycleMode #3
]],

  CSINode = [[
@kind
metadata meta.ObjectMeta #1
spec! CSINodeSpec #2
]],

  CSINodeDriver = [[
allocatable *VolumeNodeResources #4
name! string #1
nodeID! string #2
topologyKeys+ []string atomic #3
]],

  CSINodeSpec = [[drivers! []CSINodeDriver map(name) patch:merge(name) #1]],

  CSIStorageCapacity = [[
@kind
capacity *Quantity #4
maximumVolumeSize *Quantity #5
metadata meta.ObjectMeta #1
nodeTopology *meta.LabelSelector #2
storageClassName! string #3
]],

  StorageClass = [[
@kind
allowVolumeExpansion *bool #6
allowedTopologies []core.TopologySelectorTerm atomic #8
metadata meta.ObjectMeta #1
mountOptions []string atomic #5
parameters {}string #3
provisioner! string #2
reclaimPolicy *string {Delete|Recycle|Retain} go:v1.PersistentVolumeReclaimPolicy #4
volumeBindingMode *string {Immediate|WaitForFirstConsumer} go:v1.VolumeBindingMode #7
]],

  TokenRequest = [[
audience! string #1
expirationSeconds *int64 #2
]],

  VolumeAttachment = [[
@kind
metadata meta.ObjectMeta #1
spec! VolumeAttachmentSpec #2
status VolumeAttachmentStatus #3
]],

  VolumeAttachmentSource = [[
inlineVolumeSpec *core.PersistentVolumeSpec #2
persistentVolumeName *string #1
]],

  VolumeAttachmentSpec = [[
attacher! string #1
nodeName! string #3
source! VolumeAttachmentSource #2
]],

  VolumeAttachmentStatus = [[
attachError *VolumeError #3
attached! bool #1
attachmentMetadata {}string #2
detachError *VolumeError #4
]],

  VolumeAttributesClass = [[
@kind
driverName! string #2
metadata meta.ObjectMeta #1
parameters {}string #3
]],

  VolumeError = [[
errorCode *int32 #3
message string #2
time meta.Time #1
]],

  VolumeNodeResources = [[count *int32 #1]],

}
