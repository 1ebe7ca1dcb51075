--- Written by tools/kinds; the notation is described in schema/notation.lua.
return {

  AWSElasticBlockStoreVolumeSource = [[
fsType string #2
partition int32 #3
readOnly bool #4
volumeID! string #1
]],

  Affinity = [[
nodeAffinity *NodeAffinity #1
podAffinity *PodAffinity #2
podAntiAffinity *PodAntiAffinity #3
]],

  AppArmorProfile = [[
localhostProfile *string #2
type! string {Localhost|RuntimeDefault|Unconfined} go:v1.AppArmorProfileType #1
]],

  AttachedVolume = [[
devicePath! string #2
name! string go:v1.UniqueVolumeName #1
]],

  AzureDiskVolumeSource = [[
cachingMode *string ="ReadWrite" {None|ReadOnly|ReadWrite} go:v1.AzureDataDiskCachingMode #3
diskName! string #1
diskURI! string #2
fsType *string ="ext4" #4
kind *string ="Shared" {Dedicated|Managed|Shared} go:v1.AzureDataDiskKind #6
readOnly *bool =false #5
]],

  AzureFilePersistentVolumeSource = [[
readOnly bool #3
secretName! string #1
secretNamespace+ *string #4
shareName! string #2
]],

  AzureFileVolumeSource = [[
readOnly bool #3
secretName! string #1
shareName! string #2
]],

  Binding = [[
@kind
metadata meta.ObjectMeta #1
target! ObjectReference #2
]],

  CSIPersistentVolumeSource = [[
controllerExpandSecretRef *SecretReference #9
controllerPublishSecretRef *SecretReference #6
driver! string #1
fsType string #4
nodeExpandSecretRef *SecretReference #10
nodePublishSecretRef *SecretReference #8
nodeStageSecretRef *SecretReference #7
readOnly bool #3
volumeAttributes {}string #5
volumeHandle! string #2
]],

  CSIVolumeSource = [[
driver! string #1
fsType *string #3
nodePublishSecretRef *LocalObjectReference #5
readOnly *bool #2
volumeAttributes {}string #4
]],

  Capabilities = [[
add []string atomic go:[]v1.Capability #1
drop []string atomic go:[]v1.Capability #2
]],

  CephFSPersistentVolumeSource = [[
monitors! []string atomic #1
path string #2
readOnly bool #6
secretFile string #4
secretRef *SecretReference #5
user string #3
]],

  CephFSVolumeSource = [[
monitors! []string atomic #1
path string #2
readOnly bool #6
secretFile string #4
secretRef *LocalObjectReference #5
user string #3
]],

  CinderPersistentVolumeSource = [[
fsType string #2
readOnly bool #3
secretRef *SecretReference #4
volumeID! string #1
]],

  CinderVolumeSource = [[
fsType string #2
readOnly bool #3
secretRef *LocalObjectReference #4
volumeID! string #1
]],

  ClientIPConfig = [[timeoutSeconds *int32 #1]],

  ClusterTrustBundleProjection = [[
labelSelector *meta.LabelSelector #3
name *string #1
optional *bool #5
path! string #4
signerName *string #2
]],

  ComponentCondition = [[
error string #4
message string #3
status! string go:v1.ConditionStatus #2
type! string go:v1.ComponentConditionType #1
]],

  ComponentStatus = [[
@kind
conditions []ComponentCondition map(type) patch:merge(type) #2
metadata meta.ObjectMeta #1
]],

  ConfigMap = [[
@kind
binaryData {}bytes #3
data {}string #2
immutable *bool #4
metadata meta.ObjectMeta #1
]],

  ConfigMapEnvSource = [[
name string ="" in:LocalObjectReference #1.1
optional *bool #2
]],

  ConfigMapKeySelector = [[
@atomic
key! string #2
name string ="" in:LocalObjectReference #1.1
optional *bool #3
]],

  ConfigMapNodeConfigSource = [[
kubeletConfigKey! string #5
name! string #2
namespace! string #1
resourceVersion string #4
uid string go:types.UID #3
]],

  ConfigMapProjection = [[
items []KeyToPath atomic #2
name string ="" in:LocalObjectReference #1.1
optional *bool #4
]],

  ConfigMapVolumeSource = [[
defaultMode *int32 #3
items []KeyToPath atomic #2
name string ="" in:LocalObjectReference #1.1
optional *bool #4
]],

  Container = [[
args []string atomic #4
command []string atomic #3
env []EnvVar map(name) patch:merge(name) #7
envFrom []EnvFromSource atomic #19
image string #2
imagePullPolicy string {Always|IfNotPresent|Never} go:v1.PullPolicy #14
lifecycle *Lifecycle #12
livenessProbe *Probe #10
name! string #1
ports []ContainerPort map(containerPort,protocol) patch:merge(containerPort) #6
readinessProbe *Probe #11
resizePolicy []ContainerResizePolicy atomic #23
resources ResourceRequirements #8
restartPolicy *string go:v1.ContainerRestartPolicy #24
restartPolicyRules []ContainerRestartRule atomic #25
securityContext *SecurityContext #15
startupProbe *Probe #22
stdin bool #16
stdinOnce bool #17
terminationMessagePath string #13
terminationMessagePolicy string {FallbackToLogsOnError|File} go:v1.TerminationMessagePolicy #20
tty bool #18
volumeDevices []VolumeDevice map(devicePath) patch:merge(devicePath) #21
volumeMounts []VolumeMount map(mountPath) patch:merge(mountPath) #9
workingDir string #5
]],

  ContainerExtendedResourceRequest = [[
containerName! string #1
requestName! string #3
resourceName! string #2
]],

  ContainerImage = [[
names+ []string atomic #1
sizeBytes int64 #2
]],

  ContainerPort = [[
containerPort! int32 #3
hostIP string #5
hostPort int32 #2
name string #1
protocol string ="TCP" {SCTP|TCP|UDP} go:v1.Protocol #4
]],

  ContainerResizePolicy = [[
resourceName! string go:v1.ResourceName #1
restartPolicy! string go:v1.ResourceResizeRestartPolicy #2
]],

  ContainerRestartRule = [[
action- string go:v1.ContainerRestartRuleAction #1
exitCodes *ContainerRestartRuleOnExitCodes #2
]],

  ContainerRestartRuleOnExitCodes = [[
operator- string go:v1.ContainerRestartRuleOnExitCodesOperator #1
values []int32 set #2
]],

  ContainerState = [[
running *ContainerStateRunning #2
terminated *ContainerStateTerminated #3
waiting *ContainerStateWaiting #1
]],

  ContainerStateRunning = [[startedAt meta.Time #1]],

  ContainerStateTerminated = [[
containerID string #7
exitCode! int32 #1
finishedAt meta.Time #6
message string #4
reason string #3
signal int32 #2
startedAt meta.Time #5
]],

  ContainerStateWaiting = [[
message string #2
reason string #1
]],

  ContainerStatus = [[
allocatedResources {}Quantity go:v1.ResourceList #10
allocatedResourcesStatus []ResourceStatus map(name) patch:merge(name) #14
containerID string #8
image! string #6
imageID! string #7
lastState ContainerState #3
name! string #1
ready! bool #4
resources *ResourceRequirements #11
restartCount! int32 #5
started *bool #9
state ContainerState #2
stopSignal *string {SIGABRT|SIGALRM|SIGBUS|SIGCHLD|SIGCLD|SIGCONT|SIGFPE|SIGHUP|SIGILL|SIGINT|SIGIO|SIGIOT|SIGKILL|
  SIGPIPE|SIGPOLL|SIGPROF|SIGPWR|SIGQUIT|SIGRTMAX|SIGRTMAX-1|SIGRTMAX-10|SIGRTMAX-11|SIGRTMAX-12|SIGRTMAX-13|
  SIGRTMAX-14|SIGRTMAX-2|SIGRTMAX-3|SIGRTMAX-4|SIGRTMAX-5|SIGRTMAX-6|SIGRTMAX-7|SIGRTMAX-8|SIGRTMAX-9|SIGRTMIN|
  SIGRTMIN+1|SIGRTMIN+10|SIGRTMIN+11|SIGRTMIN+12|SIGRTMIN+13|SIGRTMIN+14|SIGRTMIN+15|SIGRTMIN+2|SIGRTMIN+3|SIGRTMIN+4|
  SIGRTMIN+5|SIGRTMIN+6|SIGRTMIN+7|SIGRTMIN+8|SIGRTMIN+9|SIGSEGV|SIGSTKFLT|SIGSTOP|SIGSYS|SIGTERM|SIGTRAP|SIGTSTP|
  SIGTTIN|SIGTTOU|SIGURG|SIGUSR1|SIGUSR2|SIGVTALRM|SIGWINCH|SIGXCPU|SIGXFSZ} go:v1.Signal #15
user *ContainerUser #13
volumeMounts []VolumeMountStatus map(mountPath) patch:merge(mountPath) #12
]],

  ContainerUser = [[linux *LinuxContainerUser #1]],

  DaemonEndpoint = [[Port! int32 #1]],

  DownwardAPIProjection = [[items []DownwardAPIVolumeFile atomic #1]],

  DownwardAPIVolumeFile = [[
fieldRef *ObjectFieldSelector #2
mode *int32 #4
path! string #1
resourceFieldRef *ResourceFieldSelector #3
]],

  DownwardAPIVolumeSource = [[
defaultMode *int32 #2
items []DownwardAPIVolumeFile atomic #1
]],

  EmptyDirVolumeSource = [[
medium string go:v1.StorageMedium #1
sizeLimit *Quantity #2
]],

  EndpointAddress = [[
@atomic
hostname string #3
ip! string #1
nodeName *string #4
targetRef *ObjectReference #2
]],

  EndpointPort = [[
@atomic
appProtocol *string #4
name string #1
port! int32 #2
protocol string {SCTP|TCP|UDP} go:v1.Protocol #3
]],

  EndpointSubset = [[
addresses []EndpointAddress atomic #1
notReadyAddresses []EndpointAddress atomic #2
ports []EndpointPort atomic #3
]],

  Endpoints = [[
@kind
metadata meta.ObjectMeta #1
subsets []EndpointSubset atomic #2
]],

  EnvFromSource = [[
configMapRef *ConfigMapEnvSource #2
prefix string #1
secretRef *SecretEnvSource #3
]],

  EnvVar = [[
name! string #1
value string #2
valueFrom *EnvVarSource #3
]],

  EnvVarSource = [[
configMapKeyRef *ConfigMapKeySelector #3
fieldRef *ObjectFieldSelector #1
fileKeyRef *FileKeySelector #5
resourceFieldRef *ResourceFieldSelector #2
secretKeyRef *SecretKeySelector #4
]],

  EphemeralContainer = [[
args []string atomic in:EphemeralContainerCommon #1.4
command []string atomic in:EphemeralContainerCommon #1.3
env []EnvVar map(name) patch:merge(name) in:EphemeralContainerCommon #1.7
envFrom []EnvFromSource atomic in:EphemeralContainerCommon #1.19
image string in:EphemeralContainerCommon #1.2
imagePullPolicy string {Always|IfNotPresent|Never} go:v1.PullPolicy in:EphemeralContainerCommon #1.14
lifecycle *Lifecycle in:EphemeralContainerCommon #1.12
livenessProbe *Probe in:EphemeralContainerCommon #1.10
name! string in:EphemeralContainerCommon #1.1
ports []ContainerPort map(containerPort,protocol) patch:merge(containerPort) in:EphemeralContainerCommon #1.6
readinessProbe *Probe in:EphemeralContainerCommon #1.11
resizePolicy []ContainerResizePolicy atomic in:EphemeralContainerCommon #1.23
resources ResourceRequirements in:EphemeralContainerCommon #1.8
restartPolicy *string go:v1.ContainerRestartPolicy in:EphemeralContainerCommon #1.24
restartPolicyRules []ContainerRestartRule atomic in:EphemeralContainerCommon #1.25
securityContext *SecurityContext in:EphemeralContainerCommon #1.15
startupProbe *Probe in:EphemeralContainerCommon #1.22
stdin bool in:EphemeralContainerCommon #1.16
stdinOnce bool in:EphemeralContainerCommon #1.17
targetContainerName string #2
terminationMessagePath string in:EphemeralContainerCommon #1.13
terminationMessagePolicy string {FallbackToLogsOnError|
  File} go:v1.TerminationMessagePolicy in:EphemeralContainerCommon #1.20
tty bool in:EphemeralContainerCommon #1.18
volumeDevices []VolumeDevice map(devicePath) patch:merge(devicePath) in:EphemeralContainerCommon #1.21
volumeMounts []VolumeMount map(mountPath) patch:merge(mountPath) in:EphemeralContainerCommon #1.9
workingDir string in:EphemeralContainerCommon #1.5
]],

  EphemeralVolumeSource = [[volumeClaimTemplate *PersistentVolumeClaimTemplate #1]],

  Event = [[
@kind
action string #12
count int32 #8
eventTime meta.MicroTime #10
firstTimestamp meta.Time #6
involvedObject! ObjectReference #2
lastTimestamp meta.Time #7
message string #4
metadata! meta.ObjectMeta #1
reason string #3
related *ObjectReference #13
reportingComponent+ string #14
reportingInstance+ string #15
series *EventSeries #11
source EventSource #5
type string #9
]],

  EventSeries = [[
count int32 #1
lastObservedTime meta.MicroTime #2
]],

  EventSource = [[
component string #1
host string #2
]],

  ExecAction = [[command []string atomic #1]],

  FCVolumeSource = [[
fsType string #3
lun *int32 #2
readOnly bool #4
targetWWNs []string atomic #1
wwids []string atomic #5
]],

  FileKeySelector = [[
@atomic
key! string #3
optional *bool =false #4
path! string #2
volumeName! string #1
]],

  FlexPersistentVolumeSource = [[
driver! string #1
fsType string #2
options {}string #5
readOnly bool #4
secretRef *SecretReference #3
]],

  FlexVolumeSource = [[
driver! string #1
fsType string #2
options {}string #5
readOnly bool #4
secretRef *LocalObjectReference #3
]],

  FlockerVolumeSource = [[
datasetName string #1
datasetUUID string #2
]],

  GCEPersistentDiskVolumeSource = [[
fsType string #2
partition int32 #3
pdName! string #1
readOnly bool #4
]],

  GRPCAction = [[
port! int32 #1
service+ *string ="" #2
]],

  GitRepoVolumeSource = [[
directory string #3
repository! string #1
revision string #2
]],

  GlusterfsPersistentVolumeSource = [[
endpoints! string #1
endpointsNamespace *string #4
path! string #2
readOnly bool #3
]],

  GlusterfsVolumeSource = [[
endpoints! string #1
path! string #2
readOnly bool #3
]],

  HTTPGetAction = [[
host string #3
httpHeaders []HTTPHeader atomic #5
path string #1
port! IntOrString #2
scheme string {HTTP|HTTPS} go:v1.URIScheme #4
]],

  HTTPHeader = [[
name! string #1
value! string #2
]],

  HostAlias = [[
hostnames []string atomic #2
ip! string #1
]],

  HostIP = [[ip! string #1]],

  HostPathVolumeSource = [[
path! string #1
type *string {|BlockDevice|CharDevice|Directory|DirectoryOrCreate|File|FileOrCreate|Socket} go:v1.HostPathType #2
]],

  ISCSIPersistentVolumeSource = [[
chapAuthDiscovery bool #8
chapAuthSession bool #11
fsType string #5
initiatorName *string #12
iqn! string #2
iscsiInterface string ="default" #4
lun! int32 #3
portals []string atomic #7
readOnly bool #6
secretRef *SecretReference #10
targetPortal! string #1
]],

  ISCSIVolumeSource = [[
chapAuthDiscovery bool #8
chapAuthSession bool #11
fsType string #5
initiatorName *string #12
iqn! string #2
iscsiInterface string ="default" #4
lun! int32 #3
portals []string atomic #7
readOnly bool #6
secretRef *LocalObjectReference #10
targetPortal! string #1
]],

  ImageVolumeSource = [[
pullPolicy string {Always|IfNotPresent|Never} go:v1.PullPolicy #2
reference string #1
]],

  ImageVolumeStatus = [[imageRef- string #1]],

  KeyToPath = [[
key! string #1
mode *int32 #3
path! string #2
]],

  Lifecycle = [[
postStart *LifecycleHandler #1
preStop *LifecycleHandler #2
stopSignal *string {SIGABRT|SIGALRM|SIGBUS|SIGCHLD|SIGCLD|SIGCONT|SIGFPE|SIGHUP|SIGILL|SIGINT|SIGIO|SIGIOT|SIGKILL|
  SIGPIPE|SIGPOLL|SIGPROF|SIGPWR|SIGQUIT|SIGRTMAX|SIGRTMAX-1|SIGRTMAX-10|SIGRTMAX-11|SIGRTMAX-12|SIGRTMAX-13|
  SIGRTMAX-14|SIGRTMAX-2|SIGRTMAX-3|SIGRTMAX-4|SIGRTMAX-5|SIGRTMAX-6|SIGRTMAX-7|SIGRTMAX-8|SIGRTMAX-9|SIGRTMIN|
  SIGRTMIN+1|SIGRTMIN+10|SIGRTMIN+11|SIGRTMIN+12|SIGRTMIN+13|SIGRTMIN+14|SIGRTMIN+15|SIGRTMIN+2|SIGRTMIN+3|SIGRTMIN+4|
  SIGRTMIN+5|SIGRTMIN+6|SIGRTMIN+7|SIGRTMIN+8|SIGRTMIN+9|SIGSEGV|SIGSTKFLT|SIGSTOP|SIGSYS|SIGTERM|SIGTRAP|SIGTSTP|
  SIGTTIN|SIGTTOU|SIGURG|SIGUSR1|SIGUSR2|SIGVTALRM|SIGWINCH|SIGXCPU|SIGXFSZ} go:v1.Signal #3
]],

  LifecycleHandler = [[
exec *ExecAction #1
httpGet *HTTPGetAction #2
sleep *SleepAction #4
tcpSocket *TCPSocketAction #3
]],

  LimitRange = [[
@kind
metadata meta.ObjectMeta #1
spec LimitRangeSpec #2
]],

  LimitRangeItem = [[
default {}Quantity go:v1.ResourceList #4
defaultRequest {}Quantity go:v1.ResourceList #5
max {}Quantity go:v1.ResourceList #2
maxLimitRequestRatio {}Quantity go:v1.ResourceList #6
min {}Quantity go:v1.ResourceList #3
type! string go:v1.LimitType #1
]],

  LimitRangeSpec = [[limits! []LimitRangeItem atomic #1]],

  LinuxContainerUser = [[
gid! int64 #2
supplementalGroups []int64 atomic #3
uid! int64 #1
]],

  LoadBalancerIngress = [[
hostname string #2
ip string #1
ipMode *string go:v1.LoadBalancerIPMode #3
ports []PortStatus atomic #4
]],

  LoadBalancerStatus = [[ingress []LoadBalancerIngress atomic #1]],

  LocalObjectReference = [[
@atomic
name string ="" #1
]],

  LocalVolumeSource = [[
fsType *string #2
path! string #1
]],

  ModifyVolumeStatus = [[
status! string {InProgress|Infeasible|Pending} go:v1.PersistentVolumeClaimModifyVolumeStatus #2
targetVolumeAttributesClassName string #1
]],

  NFSVolumeSource = [[
path! string #2
readOnly bool #3
server! string #1
]],

  Namespace = [[
@kind
metadata meta.ObjectMeta #1
spec NamespaceSpec #2
status NamespaceStatus #3
]],

  NamespaceCondition = [[
lastTransitionTime meta.Time #4
message string #6
reason string #5
status! string go:v1.ConditionStatus #2
type! string go:v1.NamespaceConditionType #1
]],

  NamespaceSpec = [[finalizers []string atomic go:[]v1.FinalizerName #1]],

  NamespaceStatus = [[
conditions []NamespaceCondition map(type) patch:merge(type) #2
phase string {Active|Terminating} go:v1.NamespacePhase #1
]],

  Node = [[
@kind
metadata meta.ObjectMeta #1
spec NodeSpec #2
status NodeStatus #3
]],

  NodeAddress = [[
address! string #2
type! string go:v1.NodeAddressType #1
]],

  NodeAffinity = [[
preferredDuringSchedulingIgnoredDuringExecution []PreferredSchedulingTerm atomic #2
requiredDuringSchedulingIgnoredDuringExecution *NodeSelector #1
]],

  NodeAllocatableResourceClaimStatus = [[
containers []string set #2
resourceClaimName! string #1
resources! {}Quantity go:map[v1.ResourceName]resource.Quantity #3
]],

  NodeCondition = [[
lastHeartbeatTime meta.Time #3
lastTransitionTime meta.Time #4
message string #6
reason string #5
status! string go:v1.ConditionStatus #2
type! string go:v1.NodeConditionType #1
]],

  NodeConfigSource = [[configMap *ConfigMapNodeConfigSource #2]],

  NodeConfigStatus = [[
active *NodeConfigSource #2
assigned *NodeConfigSource #1
error string #4
lastKnownGood *NodeConfigSource #3
]],

  NodeDaemonEndpoints = [[kubeletEndpoint DaemonEndpoint #1]],

  NodeFeatures = [[supplementalGroupsPolicy *bool #1]],

  NodeRuntimeHandler = [[
features *NodeRuntimeHandlerFeatures #2
name+ string #1
]],

  NodeRuntimeHandlerFeatures = [[
recursiveReadOnlyMounts *bool #1
userNamespaces *bool #2
]],

  NodeSelector = [[
@atomic
nodeSelectorTerms! []NodeSelectorTerm atomic #1
]],

  NodeSelectorRequirement = [[
key! string #1
operator! string {DoesNotExist|Exists|Gt|In|Lt|NotIn} go:v1.NodeSelectorOperator #2
values []string atomic #3
]],

  NodeSelectorTerm = [[
@atomic
matchExpressions []NodeSelectorRequirement atomic #1
matchFields []NodeSelectorRequirement atomic #2
]],

  NodeSpec = [[
configSource *NodeConfigSource #6
externalID string #2
podCIDR string #1
podCIDRs []string set patch:merge #7
providerID string #3
taints []Taint atomic #5
unschedulable bool #4
]],

  NodeStatus = [[
addresses []NodeAddress map(type) patch:merge(type) #5
allocatable {}Quantity go:v1.ResourceList #2
capacity {}Quantity go:v1.ResourceList #1
conditions []NodeCondition map(type) patch:merge(type) #4
config *NodeConfigStatus #11
daemonEndpoints NodeDaemonEndpoints #6
declaredFeatures []string atomic #14
features *NodeFeatures #13
images []ContainerImage atomic #8
nodeInfo NodeSystemInfo #7
phase string {Pending|Running|Terminated} go:v1.NodePhase #3
runtimeHandlers []NodeRuntimeHandler atomic #12
volumesAttached []AttachedVolume atomic #10
volumesInUse []string atomic go:[]v1.UniqueVolumeName #9
]],

  NodeSwapStatus = [[capacity *int64 #1]],

  NodeSystemInfo = [[
architecture! string #10
bootID! string #3
containerRuntimeVersion! string #6
kernelVersion! string #4
kubeProxyVersion! string #8
kubeletVersion! string #7
machineID! string #1
operatingSystem! string #9
osImage! string #5
swap *NodeSwapStatus #11
systemUUID! string #2
]],

  ObjectFieldSelector = [[
@atomic
apiVersion string #1
fieldPath! string #2
]],

  ObjectReference = [[
@atomic
apiVersion string #5
fieldPath string #7
kind string #1
name string #3
namespace string #2
resourceVersion string #6
uid string go:types.UID #4
]],

  PersistentVolume = [[
@kind
metadata meta.ObjectMeta #1
spec PersistentVolumeSpec #2
status PersistentVolumeStatus #3
]],

  PersistentVolumeClaim = [[
@kind
metadata meta.ObjectMeta #1
spec PersistentVolumeClaimSpec #2
status PersistentVolumeClaimStatus #3
]],

  PersistentVolumeClaimCondition = [[
lastProbeTime meta.Time #3
lastTransitionTime meta.Time #4
message string #6
reason string #5
status! string go:v1.ConditionStatus #2
type! string go:v1.PersistentVolumeClaimConditionType #1
]],

  PersistentVolumeClaimSpec = [[
accessModes []string atomic {ReadOnlyMany|ReadWriteMany|ReadWriteOnce|
  ReadWriteOncePod} go:[]v1.PersistentVolumeAccessMode #1
dataSource *TypedLocalObjectReference #7
dataSourceRef *TypedObjectReference #8
resources VolumeResourceRequirements #2
selector *meta.LabelSelector #4
storageClassName *string #5
volumeAttributesClassName *string #9
volumeMode *string {Block|Filesystem} go:v1.PersistentVolumeMode #6
volumeName string #3
]],

  PersistentVolumeClaimStatus = [[
accessModes []string atomic {ReadOnlyMany|ReadWriteMany|ReadWriteOnce|
  ReadWriteOncePod} go:[]v1.PersistentVolumeAccessMode #2
allocatedResourceStatuses {}string granular {ControllerResizeInProgress|ControllerResizeInfeasible|
  NodeResizeInProgress|NodeResizeInfeasible|NodeResizePending} go:map[v1.ResourceName]v1.ClaimResourceStatus #7
allocatedResources {}Quantity go:v1.ResourceList #5
capacity {}Quantity go:v1.ResourceList #3
conditions []PersistentVolumeClaimCondition map(type) patch:merge(type) #4
currentVolumeAttributesClassName *string #8
modifyVolumeStatus *ModifyVolumeStatus #9
phase string {Bound|Lost|Pending} go:v1.PersistentVolumeClaimPhase #1
]],

  PersistentVolumeClaimTemplate = [[
metadata meta.ObjectMeta #1
spec! PersistentVolumeClaimSpec #2
]],

  PersistentVolumeClaimVolumeSource = [[
claimName! string #1
readOnly bool #2
]],

  PersistentVolumeSpec = [[
accessModes []string atomic {ReadOnlyMany|ReadWriteMany|ReadWriteOnce|
  ReadWriteOncePod} go:[]v1.PersistentVolumeAccessMode #3
awsElasticBlockStore *AWSElasticBlockStoreVolumeSource in:PersistentVolumeSource #2.2
azureDisk *AzureDiskVolumeSource in:PersistentVolumeSource #2.16
azureFile *AzureFilePersistentVolumeSource in:PersistentVolumeSource #2.13
capacity {}Quantity go:v1.ResourceList #1
cephfs *CephFSPersistentVolumeSource in:PersistentVolumeSource #2.9
cinder *CinderPersistentVolumeSource in:PersistentVolumeSource #2.8
claimRef *ObjectReference granular #4
csi *CSIPersistentVolumeSource in:PersistentVolumeSource #2.22
fc *FCVolumeSource in:PersistentVolumeSource #2.10
flexVolume *FlexPersistentVolumeSource in:PersistentVolumeSource #2.12
flocker *FlockerVolumeSource in:PersistentVolumeSource #2.11
gcePersistentDisk *GCEPersistentDiskVolumeSource in:PersistentVolumeSource #2.1
glusterfs *GlusterfsPersistentVolumeSource in:PersistentVolumeSource #2.4
hostPath *HostPathVolumeSource in:PersistentVolumeSource #2.3
iscsi *ISCSIPersistentVolumeSource in:PersistentVolumeSource #2.7
local *LocalVolumeSource in:PersistentVolumeSource #2.20
mountOptions []string atomic #7
nfs *NFSVolumeSource in:PersistentVolumeSource #2.5
nodeAffinity *VolumeNodeAffinity #9
persistentVolumeReclaimPolicy string {Delete|Recycle|Retain} go:v1.PersistentVolumeReclaimPolicy #5
photonPersistentDisk *PhotonPersistentDiskVolumeSource in:PersistentVolumeSource #2.17
portworxVolume *PortworxVolumeSource in:PersistentVolumeSource #2.18
quobyte *QuobyteVolumeSource in:PersistentVolumeSource #2.15
rbd *RBDPersistentVolumeSource in:PersistentVolumeSource #2.6
scaleIO *ScaleIOPersistentVolumeSource in:PersistentVolumeSource #2.19
storageClassName string #6
storageos *StorageOSPersistentVolumeSource in:PersistentVolumeSource #2.21
volumeAttributesClassName *string #10
volumeMode *string {Block|Filesystem} go:v1.PersistentVolumeMode #8
vsphereVolume *VsphereVirtualDiskVolumeSource in:PersistentVolumeSource #2.14
]],

  PersistentVolumeStatus = [[
lastPhaseTransitionTime *meta.Time #4
message string #2
phase string {Available|Bound|Failed|Pending|Released} go:v1.PersistentVolumePhase #1
reason string #3
]],

  PhotonPersistentDiskVolumeSource = [[
fsType string #2
pdID! string #1
]],

  Pod = [[
@kind
metadata meta.ObjectMeta #1
spec PodSpec #2
status PodStatus #3
]],

  PodAffinity = [[
preferredDuringSchedulingIgnoredDuringExecution []WeightedPodAffinityTerm atomic #2
requiredDuringSchedulingIgnoredDuringExecution []PodAffinityTerm atomic #1
]],

  PodAffinityTerm = [[
labelSelector *meta.LabelSelector #1
matchLabelKeys []string atomic #5
mismatchLabelKeys []string atomic #6
namespaceSelector *meta.LabelSelector #4
namespaces []string atomic #2
topologyKey! string #3
]],

  PodAntiAffinity = [[
preferredDuringSchedulingIgnoredDuringExecution []WeightedPodAffinityTerm atomic #2
requiredDuringSchedulingIgnoredDuringExecution []PodAffinityTerm atomic #1
]],

  PodCertificateProjection = [[
certificateChainPath string #6
credentialBundlePath string #4
keyPath string #5
keyType- string #2
maxExpirationSeconds *int32 #3
signerName- string #1
userAnnotations {}string #7
]],

  PodCondition = [[
lastProbeTime meta.Time #3
lastTransitionTime meta.Time #4
message string #6
observedGeneration int64 #7
reason string #5
status! string go:v1.ConditionStatus #2
type! string go:v1.PodConditionType #1
]],

  PodDNSConfig = [[
nameservers []string atomic #1
options []PodDNSConfigOption atomic #3
searches []string atomic #2
]],

  PodDNSConfigOption = [[
name string #1
value *string #2
]],

  PodExtendedResourceClaimStatus = [[
requestMappings! []ContainerExtendedResourceRequest atomic #1
resourceClaimName! string #2
]],

  PodIP = [[ip! string #1]],

  PodOS = [[name! string go:v1.OSName #1]],

  PodReadinessGate = [[conditionType! string go:v1.PodConditionType #1]],

  PodResourceClaim = [[
name! string #1
resourceClaimName *string #3
resourceClaimTemplateName *string #4
]],

  PodResourceClaimStatus = [[
name! string #1
resourceClaimName *string #2
]],

  PodSchedulingGate = [[name! string #1]],

  PodSchedulingGroup = [[podGroupName *string #1]],

  PodSecurityContext = [[
appArmorProfile *AppArmorProfile #11
fsGroup *int64 #5
fsGroupChangePolicy *string {Always|OnRootMismatch} go:v1.PodFSGroupChangePolicy #9
runAsGroup *int64 #6
runAsNonRoot *bool #3
runAsUser *int64 #2
seLinuxChangePolicy *string go:v1.PodSELinuxChangePolicy #13
seLinuxOptions *SELinuxOptions #1
seccompProfile *SeccompProfile #10
supplementalGroups []int64 atomic #4
supplementalGroupsPolicy *string {Merge|Strict} go:v1.SupplementalGroupsPolicy #12
sysctls []Sysctl atomic #7
windowsOptions *WindowsSecurityContextOptions #8
]],

  PodSpec = [[
activeDeadlineSeconds *int64 #5
affinity *Affinity #18
automountServiceAccountToken *bool #21
containers! []Container map(name) patch:merge(name) #2
dnsConfig *PodDNSConfig #26
dnsPolicy string {ClusterFirst|ClusterFirstWithHostNet|Default|None} go:v1.DNSPolicy #6
enableServiceLinks *bool #30
ephemeralContainers []EphemeralContainer map(name) patch:merge(name) #34
hostAliases []HostAlias map(ip) patch:merge(ip) #23
hostIPC bool #13
hostNetwork bool #11
hostPID bool #12
hostUsers *bool #37
hostname string #16
hostnameOverride *string #41
imagePullSecrets []LocalObjectReference map(name) patch:merge(name) #15
initContainers []Container map(name) patch:merge(name) #20
nodeName string #10
nodeSelector {}string atomic #7
os *PodOS #36
overhead {}Quantity go:v1.ResourceList #32
preemptionPolicy *string {Never|PreemptLowerPriority} go:v1.PreemptionPolicy #31
priority *int32 #25
priorityClassName string #24
readinessGates []PodReadinessGate atomic #28
resourceClaims []PodResourceClaim map(name) patch:merge,retainKeys(name) #39
resources *ResourceRequirements #40
restartPolicy string {Always|Never|OnFailure} go:v1.RestartPolicy #3
runtimeClassName *string #29
schedulerName string #19
schedulingGates []PodSchedulingGate map(name) patch:merge(name) #38
schedulingGroup *PodSchedulingGroup #43
securityContext *PodSecurityContext #14
serviceAccount string #9
serviceAccountName string #8
setHostnameAsFQDN *bool #35
shareProcessNamespace *bool #27
subdomain string #17
terminationGracePeriodSeconds *int64 #4
tolerations []Toleration atomic #22
topologySpreadConstraints []TopologySpreadConstraint map(topologyKey,whenUnsatisfiable) patch:merge(topologyKey) #33
volumes []Volume map(name) patch:merge,retainKeys(name) #1
]],

  PodStatus = [[
allocatedResources {}Quantity go:v1.ResourceList #19
conditions []PodCondition map(type) patch:merge(type) #2
containerStatuses []ContainerStatus atomic #8
ephemeralContainerStatuses []ContainerStatus atomic #13
extendedResourceClaimStatus *PodExtendedResourceClaimStatus #18
hostIP string #5
hostIPs []HostIP atomic patch:merge(ip) #16
initContainerStatuses []ContainerStatus atomic #10
message string #3
nodeAllocatableResourceClaimStatuses []NodeAllocatableResourceClaimStatus atomic #21
nominatedNodeName string #11
observedGeneration int64 #17
phase string {Failed|Pending|Running|Succeeded|Unknown} go:v1.PodPhase #1
podIP string #6
podIPs []PodIP map(ip) patch:merge(ip) #12
qosClass string {BestEffort|Burstable|Guaranteed} go:v1.PodQOSClass #9
reason string #4
resize string go:v1.PodResizeStatus #14
resourceClaimStatuses []PodResourceClaimStatus map(name) patch:merge,retainKeys(name) #15
resources *ResourceRequirements #20
startTime *meta.Time #7
]],

  PodTemplate = [[
@kind
metadata meta.ObjectMeta #1
template PodTemplateSpec #2
]],

  PodTemplateSpec = [[
metadata meta.ObjectMeta #1
spec PodSpec #2
]],

  PortStatus = [[
error *string #3
port! int32 #1
protocol! string {SCTP|TCP|UDP} go:v1.Protocol #2
]],

  PortworxVolumeSource = [[
fsType string #2
readOnly bool #3
volumeID! string #1
]],

  PreferredSchedulingTerm = [[
preference! NodeSelectorTerm #2
weight! int32 #1
]],

  Probe = [[
exec *ExecAction in:ProbeHandler #1.1
failureThreshold int32 #6
grpc *GRPCAction in:ProbeHandler #1.4
httpGet *HTTPGetAction in:ProbeHandler #1.2
initialDelaySeconds int32 #2
periodSeconds int32 #4
successThreshold int32 #5
tcpSocket *TCPSocketAction in:ProbeHandler #1.3
terminationGracePeriodSeconds *int64 #7
timeoutSeconds int32 #3
]],

  ProjectedVolumeSource = [[
defaultMode *int32 #2
sources+ []VolumeProjection atomic #1
]],

  QuobyteVolumeSource = [[
group string #5
readOnly bool #3
registry! string #1
tenant string #6
user string #4
volume! string #2
]],

  RBDPersistentVolumeSource = [[
fsType string #3
image! string #2
keyring string ="/etc/ceph/keyring" #6
monitors! []string atomic #1
pool string ="rbd" #4
readOnly bool #8
secretRef *SecretReference #7
user string ="admin" #5
]],

  RBDVolumeSource = [[
fsType string #3
image! string #2
keyring string ="/etc/ceph/keyring" #6
monitors! []string atomic #1
pool string ="rbd" #4
readOnly bool #8
secretRef *LocalObjectReference #7
user string ="admin" #5
]],

  ReplicationController = [[
@kind
metadata meta.ObjectMeta #1
spec ReplicationControllerSpec #2
status ReplicationControllerStatus #3
]],

  ReplicationControllerCondition = [[
lastTransitionTime meta.Time #3
message string #5
reason string #4
status! string go:v1.ConditionStatus #2
type! string go:v1.ReplicationControllerConditionType #1
]],

  ReplicationControllerSpec = [[
minReadySeconds int32 =0 #4
replicas *int32 =1 #1
selector {}string atomic #2
template *PodTemplateSpec #3
]],

  ReplicationControllerStatus = [[
availableReplicas int32 #5
conditions []ReplicationControllerCondition map(type) patch:merge(type) #6
fullyLabeledReplicas int32 #2
observedGeneration int64 #3
readyReplicas int32 #4
replicas! int32 #1
]],

  ResourceClaim = [[
name! string #1
request string #2
]],

  ResourceFieldSelector = [[
@atomic
containerName string #1
divisor Quantity #3
resource! string #2
]],

  ResourceHealth = [[
health string go:v1.ResourceHealthStatus #2
message *string #6
resourceID! string go:v1.ResourceID #1
]],

  ResourceQuota = [[
@kind
metadata meta.ObjectMeta #1
spec ResourceQuotaSpec #2
status ResourceQuotaStatus #3
]],

  ResourceQuotaSpec = [[
hard {}Quantity go:v1.ResourceList #1
scopeSelector *ScopeSelector #3
scopes []string atomic {BestEffort|CrossNamespacePodAffinity|NotBestEffort|NotTerminating|PriorityClass|Terminating|
  VolumeAttributesClass} go:[]v1.ResourceQuotaScope #2
]],

  ResourceQuotaStatus = [[
hard {}Quantity go:v1.ResourceList #1
used {}Quantity go:v1.ResourceList #2
]],

  ResourceRequirements = [[
claims []ResourceClaim map(name) #3
limits {}Quantity go:v1.ResourceList #1
requests {}Quantity go:v1.ResourceList #2
]],

  ResourceStatus = [[
name! string go:v1.ResourceName #1
resources []ResourceHealth map(resourceID) #2
]],

  SELinuxOptions = [[
level string #4
role string #2
type string #3
user string #1
]],

  ScaleIOPersistentVolumeSource = [[
fsType string ="xfs" #9
gateway! string #1
protectionDomain string #5
readOnly bool #10
secretRef! *SecretReference #3
sslEnabled bool #4
storageMode string ="ThinProvisioned" #7
storagePool string #6
system! string #2
volumeName string #8
]],

  ScaleIOVolumeSource = [[
fsType string ="xfs" #9
gateway! string #1
protectionDomain string #5
readOnly bool #10
secretRef! *LocalObjectReference #3
sslEnabled bool #4
storageMode string ="ThinProvisioned" #7
storagePool string #6
system! string #2
volumeName string #8
]],

  ScopeSelector = [[
@atomic
matchExpressions []ScopedResourceSelectorRequirement atomic #1
]],

  ScopedResourceSelectorRequirement = [[
operator! string {DoesNotExist|Exists|In|NotIn} go:v1.ScopeSelectorOperator #2
scopeName! string {BestEffort|CrossNamespacePodAffinity|NotBestEffort|NotTerminating|PriorityClass|Terminating|
  VolumeAttributesClass} go:v1.ResourceQuotaScope #1
values []string atomic #3
]],

  SeccompProfile = [[
localhostProfile *string #2
type! string {Localhost|RuntimeDefault|Unconfined} go:v1.SeccompProfileType #1
]],

  Secret = [[
@kind
data {}bytes #2
immutable *bool #5
metadata meta.ObjectMeta #1
stringData {}string #4
type string go:v1.SecretType #3
]],

  SecretEnvSource = [[
name string ="" in:LocalObjectReference #1.1
optional *bool #2
]],

  SecretKeySelector = [[
@atomic
key! string #2
name string ="" in:LocalObjectReference #1.1
optional *bool #3
]],

  SecretProjection = [[
items []KeyToPath atomic #2
name string ="" in:LocalObjectReference #1.1
optional *bool #4
]],

  SecretReference = [[
@atomic
name string #1
namespace string #2
]],

  SecretVolumeSource = [[
defaultMode *int32 #3
items []KeyToPath atomic #2
optional *bool #4
secretName string #1
]],

  SecurityContext = [[
allowPrivilegeEscalation *bool #7
appArmorProfile *AppArmorProfile #12
capabilities *Capabilities #1
privileged *bool #2
procMount *string {Default|Unmasked} go:v1.ProcMountType #9
readOnlyRootFilesystem *bool #6
runAsGroup *int64 #8
runAsNonRoot *bool #5
runAsUser *int64 #4
seLinuxOptions *SELinuxOptions #3
seccompProfile *SeccompProfile #11
windowsOptions *WindowsSecurityContextOptions #10
]],

  Service = [[
@kind
metadata meta.ObjectMeta #1
spec ServiceSpec #2
status ServiceStatus #3
]],

  ServiceAccount = [[
@kind
automountServiceAccountToken *bool #4
imagePullSecrets []LocalObjectReference atomic #3
metadata meta.ObjectMeta #1
secrets []ObjectReference map(name) patch:merge(name) #2
]],

  ServiceAccountTokenProjection = [[
audience string #1
expirationSeconds *int64 #2
path! string #3
]],

  ServicePort = [[
appProtocol *string #6
name string #1
nodePort int32 #5
port! int32 #3
protocol string ="TCP" {SCTP|TCP|UDP} go:v1.Protocol #2
targetPort IntOrString #4
]],

  ServiceSpec = [[
allocateLoadBalancerNodePorts *bool #20
clusterIP string #3
clusterIPs []string atomic #18
externalIPs []string atomic #5
externalName string #10
externalTrafficPolicy string {Cluster|Local} go:v1.ServiceExternalTrafficPolicy #11
healthCheckNodePort int32 #12
internalTrafficPolicy *string {Cluster|Local} go:v1.ServiceInternalTrafficPolicy #22
ipFamilies []string atomic {|IPv4|IPv6} go:[]v1.IPFamily #19
ipFamilyPolicy *string {PreferDualStack|RequireDualStack|SingleStack} go:v1.IPFamilyPolicy #17
loadBalancerClass *string #21
loadBalancerIP string #8
loadBalancerSourceRanges []string atomic #9
ports []ServicePort map(port,protocol) patch:merge(port) #1
publishNotReadyAddresses bool #13
selector {}string atomic #2
sessionAffinity string {ClientIP|None} go:v1.ServiceAffinity #7
sessionAffinityConfig *SessionAffinityConfig #14
trafficDistribution *string #23
type string {ClusterIP|ExternalName|LoadBalancer|NodePort} go:v1.ServiceType #4
]],

  ServiceStatus = [[
conditions []meta.Condition map(type) patch:merge(type) #2
loadBalancer LoadBalancerStatus #1
]],

  SessionAffinityConfig = [[clientIP *ClientIPConfig #1]],

  SleepAction = [[seconds! int64 #1]],

  StorageOSPersistentVolumeSource = [[
fsType string #3
readOnly bool #4
secretRef *ObjectReference #5
volumeName string #1
volumeNamespace string #2
]],

  StorageOSVolumeSource = [[
fsType string #3
readOnly bool #4
secretRef *LocalObjectReference #5
volumeName string #1
volumeNamespace string #2
]],

  Sysctl = [[
name! string #1
value! string #2
]],

  TCPSocketAction = [[
host string #2
port! IntOrString #1
]],

  Taint = [[
effect! string {NoExecute|NoSchedule|PreferNoSchedule} go:v1.TaintEffect #3
key! string #1
timeAdded *meta.Time #4
value string #2
]],

  Toleration = [[
effect string {NoExecute|NoSchedule|PreferNoSchedule} go:v1.TaintEffect #4
key string #1
operator string {Equal|Exists|Gt|Lt} go:v1.TolerationOperator #2
tolerationSeconds *int64 #5
value string #3
]],

  TopologySelectorLabelRequirement = [[
key! string #1
values! []string atomic #2
]],

  TopologySelectorTerm = [[
@atomic
matchLabelExpressions []TopologySelectorLabelRequirement atomic #1
]],

  TopologySpreadConstraint = [[
labelSelector *meta.LabelSelector #4
matchLabelKeys []string atomic #8
maxSkew! int32 #1
minDomains *int32 #5
nodeAffinityPolicy *string {Honor|Ignore} go:v1.NodeInclusionPolicy #6
nodeTaintsPolicy *string {Honor|Ignore} go:v1.NodeInclusionPolicy #7
topologyKey! string #2
whenUnsatisfiable! string {DoNotSchedule|ScheduleAnyway} go:v1.UnsatisfiableConstraintAction #3
]],

  TypedLocalObjectReference = [[
@atomic
apiGroup+ *string #1
kind! string #2
name! string #3
]],

  TypedObjectReference = [[
apiGroup+ *string #1
kind! string #2
name! string #3
namespace *string #4
]],

  Volume = [[
awsElasticBlockStore *AWSElasticBlockStoreVolumeSource in:VolumeSource #2.4
azureDisk *AzureDiskVolumeSource in:VolumeSource #2.22
azureFile *AzureFileVolumeSource in:VolumeSource #2.18
cephfs *CephFSVolumeSource in:VolumeSource #2.14
cinder *CinderVolumeSource in:VolumeSource #2.13
configMap *ConfigMapVolumeSource in:VolumeSource #2.19
csi *CSIVolumeSource in:VolumeSource #2.28
downwardAPI *DownwardAPIVolumeSource in:VolumeSource #2.16
emptyDir *EmptyDirVolumeSource in:VolumeSource #2.2
ephemeral *EphemeralVolumeSource in:VolumeSource #2.29
fc *FCVolumeSource in:VolumeSource #2.17
flexVolume *FlexVolumeSource in:VolumeSource #2.12
flocker *FlockerVolumeSource in:VolumeSource #2.15
gcePersistentDisk *GCEPersistentDiskVolumeSource in:VolumeSource #2.3
gitRepo *GitRepoVolumeSource in:VolumeSource #2.5
glusterfs *GlusterfsVolumeSource in:VolumeSource #2.9
hostPath *HostPathVolumeSource in:VolumeSource #2.1
image *ImageVolumeSource in:VolumeSource #2.30
iscsi *ISCSIVolumeSource in:VolumeSource #2.8
name! string #1
nfs *NFSVolumeSource in:VolumeSource #2.7
persistentVolumeClaim *PersistentVolumeClaimVolumeSource in:VolumeSource #2.10
photonPersistentDisk *PhotonPersistentDiskVolumeSource in:VolumeSource #2.23
portworxVolume *PortworxVolumeSource in:VolumeSource #2.24
projected *ProjectedVolumeSource in:VolumeSource #2.26
quobyte *QuobyteVolumeSource in:VolumeSource #2.21
rbd *RBDVolumeSource in:VolumeSource #2.11
scaleIO *ScaleIOVolumeSource in:VolumeSource #2.25
secret *SecretVolumeSource in:VolumeSource #2.6
storageos *StorageOSVolumeSource in:VolumeSource #2.27
vsphereVolume *VsphereVirtualDiskVolumeSource in:VolumeSource #2.20
]],

  VolumeDevice = [[
devicePath! string #2
name! string #1
]],

  VolumeMount = [[
mountPath! string #3
mountPropagation *string {Bidirectional|HostToContainer|None} go:v1.MountPropagationMode #5
name! string #1
readOnly bool #2
recursiveReadOnly *string go:v1.RecursiveReadOnlyMode #7
subPath string #4
subPathExpr string #6
]],

  VolumeMountStatus = [[
mountPath! string #2
name! string #1
readOnly bool #3
recursiveReadOnly *string go:v1.RecursiveReadOnlyMode #4
volumeStatus *VolumeStatus #5
]],

  VolumeNodeAffinity = [[required *NodeSelector #1]],

  VolumeProjection = [[
clusterTrustBundle *ClusterTrustBundleProjection #5
configMap *ConfigMapProjection #3
downwardAPI *DownwardAPIProjection #2
podCertificate *PodCertificateProjection #6
secret *SecretProjection #1
serviceAccountToken *ServiceAccountTokenProjection #4
]],

  VolumeResourceRequirements = [[
limits {}Quantity go:v1.ResourceList #1
requests {}Quantity go:v1.ResourceList #2
]],

  VolumeStatus = [[image *ImageVolumeStatus #1]],

  VsphereVirtualDiskVolumeSource = [[
fsType string #2
storagePolicyID string #4
storagePolicyName string #3
volumePath! string #1
]],

  WeightedPodAffinityTerm = [[
podAffinityTerm! PodAffinityTerm #2
weight! int32 #1
]],

  WindowsSecurityContextOptions = [[
gmsaCredentialSpec *string #2
gmsaCredentialSpecName *string #1
hostProcess *bool #4
runAsUserName *string #3
]],

}
