--- Written by tools/kinds; the notation is described in schema/notation.lua.
return {

  AllocatedDeviceStatus = [[
conditions+ []meta.Condition map(type) #4
data *RawExtension #5
device! string #3
driver! string #1
networkData *NetworkDeviceData #6
pool! string #2
shareID *string #7
]],

  AllocationResult = [[
allocationTimestamp *meta.Time #5
devices DeviceAllocationResult #1
nodeSelector *core.NodeSelector #3
]],

  CELDeviceSelector = [[expression! string #1]],

  CapacityRequestPolicy = [[
default+ *Quantity #1
validRange *CapacityRequestPolicyRange #4
validValues []Quantity atomic #3
]],

  CapacityRequestPolicyRange = [[
max *Quantity #2
min- *Quantity #1
step *Quantity #3
]],

  CapacityRequirements = [[requests {}Quantity go:map[v1.QualifiedName]resource.Quantity #1]],

  Counter = [[value! Quantity #1]],

  CounterSet = [[
counters- {}Counter #2
name! string #1
]],

  Device = [[
allNodes *bool #7
allowMultipleAllocations *bool #12
attributes {}DeviceAttribute go:map[v1.QualifiedName]v1.DeviceAttribute #2
bindingConditions []string atomic #10
bindingFailureConditions []string atomic #11
bindsToNode *bool #9
capacity {}DeviceCapacity go:map[v1.QualifiedName]v1.DeviceCapacity #3
consumesCounters []DeviceCounterConsumption atomic #4
name! string #1
nodeAllocatableResourceMappings {}NodeAllocatableResourceMapping
  go:map[v1.ResourceName]v1.NodeAllocatableResourceMapping #13
nodeName *string #5
nodeSelector *core.NodeSelector #6
taints []DeviceTaint atomic #8
]],

  DeviceAllocationConfiguration = [[
opaque *OpaqueDeviceConfiguration in:DeviceConfiguration #3.1
requests []string atomic #2
source! string {FromClaim|FromClass} go:v1.AllocationConfigSource #1
]],

  DeviceAllocationResult = [[
config []DeviceAllocationConfiguration atomic #2
results []DeviceRequestAllocationResult atomic #1
]],

  DeviceAttribute = [[
bool *bool #3
bools []bool atomic #7
int *int64 #2
ints []int64 atomic #6
string *string #4
strings []string atomic #8
version *string #5
versions []string atomic #9
]],

  DeviceCapacity = [[
requestPolicy *CapacityRequestPolicy #2
value! Quantity #1
]],

  DeviceClaim = [[
config []DeviceClaimConfiguration atomic #3
constraints []DeviceConstraint atomic #2
requests+ []DeviceRequest atomic #1
]],

  DeviceClaimConfiguration = [[
opaque *OpaqueDeviceConfiguration in:DeviceConfiguration #2.1
requests []string atomic #1
]],

  DeviceClass = [[
@kind
metadata meta.ObjectMeta #1
spec! DeviceClassSpec #2
]],

  DeviceClassConfiguration = [[opaque *OpaqueDeviceConfiguration in:DeviceConfiguration #1.1]],

  DeviceClassSpec = [[
config []DeviceClassConfiguration atomic #2
extendedResourceName *string #4
selectors []DeviceSelector atomic #1
]],

  DeviceConstraint = [[
distinctAttribute *string go:v1.FullyQualifiedName #3
matchAttribute *string go:v1.FullyQualifiedName #2
requests []string atomic #1
]],

  DeviceCounterConsumption = [[
counterSet! string #1
counters- {}Counter #2
]],

  DeviceRequest = [[
exactly *ExactDeviceRequest #2
firstAvailable []DeviceSubRequest atomic #3
name! string #1
]],

  DeviceRequestAllocationResult = [[
adminAccess *bool #5
bindingConditions []string atomic #7
bindingFailureConditions []string atomic #8
consumedCapacity {}Quantity go:map[v1.QualifiedName]resource.Quantity #10
device! string #4
driver! string #2
pool! string #3
request! string #1
shareID *string go:types.UID #9
tolerations []DeviceToleration atomic #6
]],

  DeviceSelector = [[cel *CELDeviceSelector #1]],

  DeviceSubRequest = [[
allocationMode string {All|ExactCount} go:v1.DeviceAllocationMode #4
capacity *CapacityRequirements #7
count int64 #5
deviceClassName! string #2
name! string #1
selectors []DeviceSelector atomic #3
tolerations []DeviceToleration atomic #6
]],

  DeviceTaint = [[
effect! string {NoExecute|NoSchedule|None} go:v1.DeviceTaintEffect #3
key! string #1
timeAdded *meta.Time #4
value string #2
]],

  DeviceToleration = [[
effect string {NoExecute|NoSchedule|None} go:v1.DeviceTaintEffect #4
key string #1
operator string ="Equal" {Equal|Exists} go:v1.DeviceTolerationOperator #2
tolerationSeconds *int64 #5
value string #3
]],

  ExactDeviceRequest = [[
adminAccess *bool #5
allocationMode string {All|ExactCount} go:v1.DeviceAllocationMode #3
capacity *CapacityRequirements #7
count int64 #4
deviceClassName! string #1
selectors []DeviceSelector atomic #2
tolerations []DeviceToleration atomic #6
]],

  NetworkDeviceData = [[
hardwareAddress string #3
interfaceName string #1
ips []string atomic #2
]],

  NodeAllocatableResourceMapping = [[
allocationMultiplier *Quantity #2
capacityKey *string go:v1.QualifiedName #1
]],

  OpaqueDeviceConfiguration = [[
driver! string #1
parameters! RawExtension #2
]],

  ResourceClaim = [[
@kind
metadata meta.ObjectMeta #1
spec! ResourceClaimSpec #2
status ResourceClaimStatus #3
]],

  ResourceClaimConsumerReference = [[
apiGroup string #1
name! string #4
resource! string #3
uid! string go:types.UID #5
]],

  ResourceClaimSpec = [[devices+ DeviceClaim #1]],

  ResourceClaimStatus = [[
allocation *AllocationResult #1
devices []AllocatedDeviceStatus map(driver,device,pool,shareID) #4
reservedFor []ResourceClaimConsumerReference map(uid) patch:merge(uid) #2
]],

  ResourceClaimTemplate = [[
@kind
metadata meta.ObjectMeta #1
spec! ResourceClaimTemplateSpec #2
]],

  ResourceClaimTemplateSpec = [[
metadata meta.ObjectMeta #1
spec! ResourceClaimSpec #2
]],

  ResourcePool = [[
generation! int64 #2
name! string #1
resourceSliceCount! int64 #3
]],

  ResourceSlice = [[
@kind
metadata meta.ObjectMeta #1
spec! ResourceSliceSpec #2
]],

  ResourceSliceSpec = [[
allNodes *bool #5
devices []Device atomic #6
driver! string #1
nodeName *string #3
nodeSelector *core.NodeSelector #4
perDeviceNodeSelection *bool #7
pool! ResourcePool #2
sharedCounters []CounterSet atomic #8
]],

}
