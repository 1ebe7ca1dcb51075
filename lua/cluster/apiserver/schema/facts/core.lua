--- Written by tools/builtin-schemas.lua; the notation is described in schema/notation.lua.
return {

  AWSElasticBlockStoreVolumeSource = [[
fsType string
partition int32
readOnly bool
volumeID! string
]],

  Affinity = [[
nodeAffinity *NodeAffinity
podAffinity *PodAffinity
podAntiAffinity *PodAntiAffinity
]],

  AppArmorProfile = [[
localhostProfile string
type! string {Localhost|RuntimeDefault|Unconfined}
]],

  AttachedVolume = [[
devicePath! string
name! string
]],

  AzureDiskVolumeSource = [[
cachingMode string ="ReadWrite" {None|ReadOnly|ReadWrite}
diskName! string
diskURI! string
fsType string ="ext4"
kind string ="Shared" {Dedicated|Managed|Shared}
readOnly bool =false
]],

  AzureFilePersistentVolumeSource = [[
readOnly bool
secretName! string
secretNamespace string
shareName! string
]],

  AzureFileVolumeSource = [[
readOnly bool
secretName! string
shareName! string
]],

  Binding = [[
@kind
metadata meta.ObjectMeta
target! ObjectReference
]],

  CSIPersistentVolumeSource = [[
controllerExpandSecretRef *SecretReference
controllerPublishSecretRef *SecretReference
driver! string
fsType string
nodeExpandSecretRef *SecretReference
nodePublishSecretRef *SecretReference
nodeStageSecretRef *SecretReference
readOnly bool
volumeAttributes {}string
volumeHandle! string
]],

  CSIVolumeSource = [[
driver! string
fsType string
nodePublishSecretRef *LocalObjectReference
readOnly bool
volumeAttributes {}string
]],

  Capabilities = [[
add []string atomic
drop []string atomic
]],

  CephFSPersistentVolumeSource = [[
monitors! []string atomic
path string
readOnly bool
secretFile string
secretRef *SecretReference
user string
]],

  CephFSVolumeSource = [[
monitors! []string atomic
path string
readOnly bool
secretFile string
secretRef *LocalObjectReference
user string
]],

  CinderPersistentVolumeSource = [[
fsType string
readOnly bool
secretRef *SecretReference
volumeID! string
]],

  CinderVolumeSource = [[
fsType string
readOnly bool
secretRef *LocalObjectReference
volumeID! string
]],

  ClientIPConfig = "timeoutSeconds int32",

  ClusterTrustBundleProjection = [[
labelSelector *meta.LabelSelector
name string
optional bool
path! string
signerName string
]],

  ConfigMap = [[
@kind
binaryData {}bytes
data {}string
immutable bool
metadata meta.ObjectMeta
]],

  ConfigMapEnvSource = [[
name string =""
optional bool
]],

  ConfigMapKeySelector = [[
@atomic
key! string
name string =""
optional bool
]],

  ConfigMapNodeConfigSource = [[
kubeletConfigKey! string
name! string
namespace! string
resourceVersion string
uid string
]],

  ConfigMapProjection = [[
items []KeyToPath atomic
name string =""
optional bool
]],

  ConfigMapVolumeSource = [[
defaultMode int32
items []KeyToPath atomic
name string =""
optional bool
]],

  Container = [[
args []string atomic
command []string atomic
env []EnvVar map(name) patch:merge(name)
envFrom []EnvFromSource atomic
image string
imagePullPolicy string {Always|IfNotPresent|Never}
lifecycle *Lifecycle
livenessProbe *Probe
name! string
ports []ContainerPort map(containerPort,protocol) patch:merge(containerPort)
readinessProbe *Probe
resizePolicy []ContainerResizePolicy atomic
resources ResourceRequirements
restartPolicy string
restartPolicyRules []ContainerRestartRule atomic
securityContext *SecurityContext
startupProbe *Probe
stdin bool
stdinOnce bool
terminationMessagePath string
terminationMessagePolicy string {FallbackToLogsOnError|File}
tty bool
volumeDevices []VolumeDevice map(devicePath) patch:merge(devicePath)
volumeMounts []VolumeMount map(mountPath) patch:merge(mountPath)
workingDir string
]],

  ContainerExtendedResourceRequest = [[
containerName! string
requestName! string
resourceName! string
]],

  ContainerImage = [[
names []string atomic
sizeBytes int64
]],

  ContainerPort = [[
containerPort! int32
hostIP string
hostPort int32
name string
protocol string ="TCP" {SCTP|TCP|UDP}
]],

  ContainerResizePolicy = [[
resourceName! string
restartPolicy! string
]],

  ContainerRestartRule = [[
action! *string
exitCodes *ContainerRestartRuleOnExitCodes
]],

  ContainerRestartRuleOnExitCodes = [[
operator! *string
values []int32 set
]],

  ContainerState = [[
running *ContainerStateRunning
terminated *ContainerStateTerminated
waiting *ContainerStateWaiting
]],

  ContainerStateRunning = "startedAt meta.Time",

  ContainerStateTerminated = [[
containerID string
exitCode! int32
finishedAt meta.Time
message string
reason string
signal int32
startedAt meta.Time
]],

  ContainerStateWaiting = [[
message string
reason string
]],

  ContainerStatus = [[
allocatedResources {}Quantity
allocatedResourcesStatus []ResourceStatus map(name) patch:merge(name)
containerID string
image! string
imageID! string
lastState ContainerState
name! string
ready! bool
resources *ResourceRequirements
restartCount! int32
started bool
state ContainerState
stopSignal string {SIGABRT|SIGALRM|SIGBUS|SIGCHLD|SIGCLD|SIGCONT|SIGFPE|SIGHUP|SIGILL|SIGINT|SIGIO|SIGIOT|
  SIGKILL|SIGPIPE|SIGPOLL|SIGPROF|SIGPWR|SIGQUIT|SIGRTMAX|SIGRTMAX-1|SIGRTMAX-10|SIGRTMAX-11|SIGRTMAX-12|
  SIGRTMAX-13|SIGRTMAX-14|SIGRTMAX-2|SIGRTMAX-3|SIGRTMAX-4|SIGRTMAX-5|SIGRTMAX-6|SIGRTMAX-7|SIGRTMAX-8|
  SIGRTMAX-9|SIGRTMIN|SIGRTMIN+1|SIGRTMIN+10|SIGRTMIN+11|SIGRTMIN+12|SIGRTMIN+13|SIGRTMIN+14|SIGRTMIN+15|
  SIGRTMIN+2|SIGRTMIN+3|SIGRTMIN+4|SIGRTMIN+5|SIGRTMIN+6|SIGRTMIN+7|SIGRTMIN+8|SIGRTMIN+9|SIGSEGV|SIGSTKFLT|
  SIGSTOP|SIGSYS|SIGTERM|SIGTRAP|SIGTSTP|SIGTTIN|SIGTTOU|SIGURG|SIGUSR1|SIGUSR2|SIGVTALRM|SIGWINCH|SIGXCPU|
  SIGXFSZ}
user *ContainerUser
volumeMounts []VolumeMountStatus map(mountPath) patch:merge(mountPath)
]],

  ContainerUser = "linux *LinuxContainerUser",

  DaemonEndpoint = "Port! int32",

  DownwardAPIProjection = "items []DownwardAPIVolumeFile atomic",

  DownwardAPIVolumeFile = [[
fieldRef *ObjectFieldSelector
mode int32
path! string
resourceFieldRef *ResourceFieldSelector
]],

  DownwardAPIVolumeSource = [[
defaultMode int32
items []DownwardAPIVolumeFile atomic
]],

  EmptyDirVolumeSource = [[
medium string
sizeLimit Quantity
]],

  EndpointAddress = [[
@atomic
hostname string
ip! string
nodeName string
targetRef *ObjectReference
]],

  EndpointPort = [[
@atomic
appProtocol string
name string
port! int32
protocol string {SCTP|TCP|UDP}
]],

  EndpointSubset = [[
addresses []EndpointAddress atomic
notReadyAddresses []EndpointAddress atomic
ports []EndpointPort atomic
]],

  Endpoints = [[
@kind
metadata meta.ObjectMeta
subsets []EndpointSubset atomic
]],

  EnvFromSource = [[
configMapRef *ConfigMapEnvSource
prefix string
secretRef *SecretEnvSource
]],

  EnvVar = [[
name! string
value string
valueFrom *EnvVarSource
]],

  EnvVarSource = [[
configMapKeyRef *ConfigMapKeySelector
fieldRef *ObjectFieldSelector
fileKeyRef *FileKeySelector
resourceFieldRef *ResourceFieldSelector
secretKeyRef *SecretKeySelector
]],

  EphemeralContainer = [[
args []string atomic
command []string atomic
env []EnvVar map(name) patch:merge(name)
envFrom []EnvFromSource atomic
image string
imagePullPolicy string {Always|IfNotPresent|Never}
lifecycle *Lifecycle
livenessProbe *Probe
name! string
ports []ContainerPort map(containerPort,protocol) patch:merge(containerPort)
readinessProbe *Probe
resizePolicy []ContainerResizePolicy atomic
resources ResourceRequirements
restartPolicy string
restartPolicyRules []ContainerRestartRule atomic
securityContext *SecurityContext
startupProbe *Probe
stdin bool
stdinOnce bool
targetContainerName string
terminationMessagePath string
terminationMessagePolicy string {FallbackToLogsOnError|File}
tty bool
volumeDevices []VolumeDevice map(devicePath) patch:merge(devicePath)
volumeMounts []VolumeMount map(mountPath) patch:merge(mountPath)
workingDir string
]],

  EphemeralVolumeSource = "volumeClaimTemplate *PersistentVolumeClaimTemplate",

  Event = [[
@kind
action string
count int32
eventTime meta.MicroTime
firstTimestamp meta.Time
involvedObject! ObjectReference
lastTimestamp meta.Time
message string
metadata! meta.ObjectMeta
reason string
related *ObjectReference
reportingComponent string =""
reportingInstance string =""
series *EventSeries
source EventSource
type string
]],

  EventSeries = [[
count int32
lastObservedTime meta.MicroTime
]],

  EventSource = [[
component string
host string
]],

  ExecAction = "command []string atomic",

  FCVolumeSource = [[
fsType string
lun int32
readOnly bool
targetWWNs []string atomic
wwids []string atomic
]],

  FileKeySelector = [[
@atomic
key! string
optional bool =false
path! string
volumeName! string
]],

  FlexPersistentVolumeSource = [[
driver! string
fsType string
options {}string
readOnly bool
secretRef *SecretReference
]],

  FlexVolumeSource = [[
driver! string
fsType string
options {}string
readOnly bool
secretRef *LocalObjectReference
]],

  FlockerVolumeSource = [[
datasetName string
datasetUUID string
]],

  GCEPersistentDiskVolumeSource = [[
fsType string
partition int32
pdName! string
readOnly bool
]],

  GRPCAction = [[
port! int32
service string =""
]],

  GitRepoVolumeSource = [[
directory string
repository! string
revision string
]],

  GlusterfsPersistentVolumeSource = [[
endpoints! string
endpointsNamespace string
path! string
readOnly bool
]],

  GlusterfsVolumeSource = [[
endpoints! string
path! string
readOnly bool
]],

  HTTPGetAction = [[
host string
httpHeaders []HTTPHeader atomic
path string
port! IntOrString
scheme string {HTTP|HTTPS}
]],

  HTTPHeader = [[
name! string
value! string
]],

  HostAlias = [[
hostnames []string atomic
ip! string
]],

  HostIP = "ip! string",

  HostPathVolumeSource = [[
path! string
type string {|BlockDevice|CharDevice|Directory|DirectoryOrCreate|File|FileOrCreate|Socket}
]],

  ISCSIPersistentVolumeSource = [[
chapAuthDiscovery bool
chapAuthSession bool
fsType string
initiatorName string
iqn! string
iscsiInterface string ="default"
lun! int32
portals []string atomic
readOnly bool
secretRef *SecretReference
targetPortal! string
]],

  ISCSIVolumeSource = [[
chapAuthDiscovery bool
chapAuthSession bool
fsType string
initiatorName string
iqn! string
iscsiInterface string ="default"
lun! int32
portals []string atomic
readOnly bool
secretRef *LocalObjectReference
targetPortal! string
]],

  ImageVolumeSource = [[
pullPolicy string {Always|IfNotPresent|Never}
reference string
]],

  ImageVolumeStatus = "imageRef! *string",

  KeyToPath = [[
key! string
mode int32
path! string
]],

  Lifecycle = [[
postStart *LifecycleHandler
preStop *LifecycleHandler
stopSignal string {SIGABRT|SIGALRM|SIGBUS|SIGCHLD|SIGCLD|SIGCONT|SIGFPE|SIGHUP|SIGILL|SIGINT|SIGIO|SIGIOT|
  SIGKILL|SIGPIPE|SIGPOLL|SIGPROF|SIGPWR|SIGQUIT|SIGRTMAX|SIGRTMAX-1|SIGRTMAX-10|SIGRTMAX-11|SIGRTMAX-12|
  SIGRTMAX-13|SIGRTMAX-14|SIGRTMAX-2|SIGRTMAX-3|SIGRTMAX-4|SIGRTMAX-5|SIGRTMAX-6|SIGRTMAX-7|SIGRTMAX-8|
  SIGRTMAX-9|SIGRTMIN|SIGRTMIN+1|SIGRTMIN+10|SIGRTMIN+11|SIGRTMIN+12|SIGRTMIN+13|SIGRTMIN+14|SIGRTMIN+15|
  SIGRTMIN+2|SIGRTMIN+3|SIGRTMIN+4|SIGRTMIN+5|SIGRTMIN+6|SIGRTMIN+7|SIGRTMIN+8|SIGRTMIN+9|SIGSEGV|SIGSTKFLT|
  SIGSTOP|SIGSYS|SIGTERM|SIGTRAP|SIGTSTP|SIGTTIN|SIGTTOU|SIGURG|SIGUSR1|SIGUSR2|SIGVTALRM|SIGWINCH|SIGXCPU|
  SIGXFSZ}
]],

  LifecycleHandler = [[
exec *ExecAction
httpGet *HTTPGetAction
sleep *SleepAction
tcpSocket *TCPSocketAction
]],

  LinuxContainerUser = [[
gid! int64
supplementalGroups []int64 atomic
uid! int64
]],

  LoadBalancerIngress = [[
hostname string
ip string
ipMode string
ports []PortStatus atomic
]],

  LoadBalancerStatus = "ingress []LoadBalancerIngress atomic",

  LocalObjectReference = [[
@atomic
name string =""
]],

  LocalVolumeSource = [[
fsType string
path! string
]],

  ModifyVolumeStatus = [[
status! string {InProgress|Infeasible|Pending}
targetVolumeAttributesClassName string
]],

  NFSVolumeSource = [[
path! string
readOnly bool
server! string
]],

  Namespace = [[
@kind
metadata meta.ObjectMeta
spec NamespaceSpec
status NamespaceStatus
]],

  NamespaceCondition = [[
lastTransitionTime meta.Time
message string
reason string
status! string
type! string
]],

  NamespaceSpec = "finalizers []string atomic",

  NamespaceStatus = [[
conditions []NamespaceCondition map(type) patch:merge(type)
phase string {Active|Terminating}
]],

  Node = [[
@kind
metadata meta.ObjectMeta
spec NodeSpec
status NodeStatus
]],

  NodeAddress = [[
address! string
type! string
]],

  NodeAffinity = [[
preferredDuringSchedulingIgnoredDuringExecution []PreferredSchedulingTerm atomic
requiredDuringSchedulingIgnoredDuringExecution *NodeSelector
]],

  NodeAllocatableResourceClaimStatus = [[
containers []string set
resourceClaimName! string
resources! {}Quantity
]],

  NodeCondition = [[
lastHeartbeatTime meta.Time
lastTransitionTime meta.Time
message string
reason string
status! string
type! string
]],

  NodeConfigSource = "configMap *ConfigMapNodeConfigSource",

  NodeConfigStatus = [[
active *NodeConfigSource
assigned *NodeConfigSource
error string
lastKnownGood *NodeConfigSource
]],

  NodeDaemonEndpoints = "kubeletEndpoint DaemonEndpoint",

  NodeFeatures = "supplementalGroupsPolicy bool",

  NodeRuntimeHandler = [[
features *NodeRuntimeHandlerFeatures
name string =""
]],

  NodeRuntimeHandlerFeatures = [[
recursiveReadOnlyMounts bool
userNamespaces bool
]],

  NodeSelector = [[
@atomic
nodeSelectorTerms! []NodeSelectorTerm atomic
]],

  NodeSelectorRequirement = [[
key! string
operator! string {DoesNotExist|Exists|Gt|In|Lt|NotIn}
values []string atomic
]],

  NodeSelectorTerm = [[
@atomic
matchExpressions []NodeSelectorRequirement atomic
matchFields []NodeSelectorRequirement atomic
]],

  NodeSpec = [[
configSource *NodeConfigSource
externalID string
podCIDR string
podCIDRs []string set patch:merge
providerID string
taints []Taint atomic
unschedulable bool
]],

  NodeStatus = [[
addresses []NodeAddress map(type) patch:merge(type)
allocatable {}Quantity
capacity {}Quantity
conditions []NodeCondition map(type) patch:merge(type)
config *NodeConfigStatus
daemonEndpoints NodeDaemonEndpoints
declaredFeatures []string atomic
features *NodeFeatures
images []ContainerImage atomic
nodeInfo NodeSystemInfo
phase string {Pending|Running|Terminated}
runtimeHandlers []NodeRuntimeHandler atomic
volumesAttached []AttachedVolume atomic
volumesInUse []string atomic
]],

  NodeSwapStatus = "capacity int64",

  NodeSystemInfo = [[
architecture! string
bootID! string
containerRuntimeVersion! string
kernelVersion! string
kubeProxyVersion! string
kubeletVersion! string
machineID! string
operatingSystem! string
osImage! string
swap *NodeSwapStatus
systemUUID! string
]],

  ObjectFieldSelector = [[
@atomic
apiVersion string
fieldPath! string
]],

  ObjectReference = [[
@atomic
apiVersion string
fieldPath string
kind string
name string
namespace string
resourceVersion string
uid string
]],

  PersistentVolume = [[
@kind
metadata meta.ObjectMeta
spec PersistentVolumeSpec
status PersistentVolumeStatus
]],

  PersistentVolumeClaim = [[
@kind
metadata meta.ObjectMeta
spec PersistentVolumeClaimSpec
status PersistentVolumeClaimStatus
]],

  PersistentVolumeClaimCondition = [[
lastProbeTime meta.Time
lastTransitionTime meta.Time
message string
reason string
status! string
type! string
]],

  PersistentVolumeClaimSpec = [[
accessModes []string atomic {ReadOnlyMany|ReadWriteMany|ReadWriteOnce|ReadWriteOncePod}
dataSource *TypedLocalObjectReference
dataSourceRef *TypedObjectReference
resources VolumeResourceRequirements
selector *meta.LabelSelector
storageClassName string
volumeAttributesClassName string
volumeMode string {Block|Filesystem}
volumeName string
]],

  PersistentVolumeClaimStatus = [[
accessModes []string atomic {ReadOnlyMany|ReadWriteMany|ReadWriteOnce|ReadWriteOncePod}
allocatedResourceStatuses {}string granular {ControllerResizeInProgress|ControllerResizeInfeasible|
  NodeResizeInProgress|NodeResizeInfeasible|NodeResizePending}
allocatedResources {}Quantity
capacity {}Quantity
conditions []PersistentVolumeClaimCondition map(type) patch:merge(type)
currentVolumeAttributesClassName string
modifyVolumeStatus *ModifyVolumeStatus
phase string {Bound|Lost|Pending}
]],

  PersistentVolumeClaimTemplate = [[
metadata meta.ObjectMeta
spec! PersistentVolumeClaimSpec
]],

  PersistentVolumeClaimVolumeSource = [[
claimName! string
readOnly bool
]],

  PersistentVolumeSpec = [[
accessModes []string atomic {ReadOnlyMany|ReadWriteMany|ReadWriteOnce|ReadWriteOncePod}
awsElasticBlockStore *AWSElasticBlockStoreVolumeSource
azureDisk *AzureDiskVolumeSource
azureFile *AzureFilePersistentVolumeSource
capacity {}Quantity
cephfs *CephFSPersistentVolumeSource
cinder *CinderPersistentVolumeSource
claimRef *ObjectReference granular
csi *CSIPersistentVolumeSource
fc *FCVolumeSource
flexVolume *FlexPersistentVolumeSource
flocker *FlockerVolumeSource
gcePersistentDisk *GCEPersistentDiskVolumeSource
glusterfs *GlusterfsPersistentVolumeSource
hostPath *HostPathVolumeSource
iscsi *ISCSIPersistentVolumeSource
local *LocalVolumeSource
mountOptions []string atomic
nfs *NFSVolumeSource
nodeAffinity *VolumeNodeAffinity
persistentVolumeReclaimPolicy string {Delete|Recycle|Retain}
photonPersistentDisk *PhotonPersistentDiskVolumeSource
portworxVolume *PortworxVolumeSource
quobyte *QuobyteVolumeSource
rbd *RBDPersistentVolumeSource
scaleIO *ScaleIOPersistentVolumeSource
storageClassName string
storageos *StorageOSPersistentVolumeSource
volumeAttributesClassName string
volumeMode string {Block|Filesystem}
vsphereVolume *VsphereVirtualDiskVolumeSource
]],

  PersistentVolumeStatus = [[
lastPhaseTransitionTime meta.Time
message string
phase string {Available|Bound|Failed|Pending|Released}
reason string
]],

  PhotonPersistentDiskVolumeSource = [[
fsType string
pdID! string
]],

  Pod = [[
@kind
metadata meta.ObjectMeta
spec PodSpec
status PodStatus
]],

  PodAffinity = [[
preferredDuringSchedulingIgnoredDuringExecution []WeightedPodAffinityTerm atomic
requiredDuringSchedulingIgnoredDuringExecution []PodAffinityTerm atomic
]],

  PodAffinityTerm = [[
labelSelector *meta.LabelSelector
matchLabelKeys []string atomic
mismatchLabelKeys []string atomic
namespaceSelector *meta.LabelSelector
namespaces []string atomic
topologyKey! string
]],

  PodAntiAffinity = [[
preferredDuringSchedulingIgnoredDuringExecution []WeightedPodAffinityTerm atomic
requiredDuringSchedulingIgnoredDuringExecution []PodAffinityTerm atomic
]],

  PodCertificateProjection = [[
certificateChainPath string
credentialBundlePath string
keyPath string
keyType! *string
maxExpirationSeconds int32
signerName! *string
userAnnotations {}string
]],

  PodCondition = [[
lastProbeTime meta.Time
lastTransitionTime meta.Time
message string
observedGeneration int64
reason string
status! string
type! string
]],

  PodDNSConfig = [[
nameservers []string atomic
options []PodDNSConfigOption atomic
searches []string atomic
]],

  PodDNSConfigOption = [[
name string
value string
]],

  PodExtendedResourceClaimStatus = [[
requestMappings! []ContainerExtendedResourceRequest atomic
resourceClaimName! string
]],

  PodIP = "ip! string",

  PodOS = "name! string",

  PodReadinessGate = "conditionType! string",

  PodResourceClaim = [[
name! string
resourceClaimName string
resourceClaimTemplateName string
]],

  PodResourceClaimStatus = [[
name! string
resourceClaimName string
]],

  PodSchedulingGate = "name! string",

  PodSchedulingGroup = "podGroupName string",

  PodSecurityContext = [[
appArmorProfile *AppArmorProfile
fsGroup int64
fsGroupChangePolicy string {Always|OnRootMismatch}
runAsGroup int64
runAsNonRoot bool
runAsUser int64
seLinuxChangePolicy string
seLinuxOptions *SELinuxOptions
seccompProfile *SeccompProfile
supplementalGroups []int64 atomic
supplementalGroupsPolicy string {Merge|Strict}
sysctls []Sysctl atomic
windowsOptions *WindowsSecurityContextOptions
]],

  PodSpec = [[
activeDeadlineSeconds int64
affinity *Affinity
automountServiceAccountToken bool
containers! []Container map(name) patch:merge(name)
dnsConfig *PodDNSConfig
dnsPolicy string {ClusterFirst|ClusterFirstWithHostNet|Default|None}
enableServiceLinks bool
ephemeralContainers []EphemeralContainer map(name) patch:merge(name)
hostAliases []HostAlias map(ip) patch:merge(ip)
hostIPC bool
hostNetwork bool
hostPID bool
hostUsers bool
hostname string
hostnameOverride string
imagePullSecrets []LocalObjectReference map(name) patch:merge(name)
initContainers []Container map(name) patch:merge(name)
nodeName string
nodeSelector {}string atomic
os *PodOS
overhead {}Quantity
preemptionPolicy string {Never|PreemptLowerPriority}
priority int32
priorityClassName string
readinessGates []PodReadinessGate atomic
resourceClaims []PodResourceClaim map(name) patch:merge,retainKeys(name)
resources *ResourceRequirements
restartPolicy string {Always|Never|OnFailure}
runtimeClassName string
schedulerName string
schedulingGates []PodSchedulingGate map(name) patch:merge(name)
schedulingGroup *PodSchedulingGroup
securityContext *PodSecurityContext
serviceAccount string
serviceAccountName string
setHostnameAsFQDN bool
shareProcessNamespace bool
subdomain string
terminationGracePeriodSeconds int64
tolerations []Toleration atomic
topologySpreadConstraints []TopologySpreadConstraint map(topologyKey,whenUnsatisfiable)
  patch:merge(topologyKey)
volumes []Volume map(name) patch:merge,retainKeys(name)
]],

  PodStatus = [[
allocatedResources {}Quantity
conditions []PodCondition map(type) patch:merge(type)
containerStatuses []ContainerStatus atomic
ephemeralContainerStatuses []ContainerStatus atomic
extendedResourceClaimStatus *PodExtendedResourceClaimStatus
hostIP string
hostIPs []HostIP atomic patch:merge(ip)
initContainerStatuses []ContainerStatus atomic
message string
nodeAllocatableResourceClaimStatuses []NodeAllocatableResourceClaimStatus atomic
nominatedNodeName string
observedGeneration int64
phase string {Failed|Pending|Running|Succeeded|Unknown}
podIP string
podIPs []PodIP map(ip) patch:merge(ip)
qosClass string {BestEffort|Burstable|Guaranteed}
reason string
resize string
resourceClaimStatuses []PodResourceClaimStatus map(name) patch:merge,retainKeys(name)
resources *ResourceRequirements
startTime meta.Time
]],

  PodTemplate = [[
@kind
metadata meta.ObjectMeta
template PodTemplateSpec
]],

  PodTemplateSpec = [[
metadata meta.ObjectMeta
spec PodSpec
]],

  PortStatus = [[
error string
port! int32
protocol! string {SCTP|TCP|UDP}
]],

  PortworxVolumeSource = [[
fsType string
readOnly bool
volumeID! string
]],

  PreferredSchedulingTerm = [[
preference! NodeSelectorTerm
weight! int32
]],

  Probe = [[
exec *ExecAction
failureThreshold int32
grpc *GRPCAction
httpGet *HTTPGetAction
initialDelaySeconds int32
periodSeconds int32
successThreshold int32
tcpSocket *TCPSocketAction
terminationGracePeriodSeconds int64
timeoutSeconds int32
]],

  ProjectedVolumeSource = [[
defaultMode int32
sources []VolumeProjection atomic
]],

  QuobyteVolumeSource = [[
group string
readOnly bool
registry! string
tenant string
user string
volume! string
]],

  RBDPersistentVolumeSource = [[
fsType string
image! string
keyring string ="/etc/ceph/keyring"
monitors! []string atomic
pool string ="rbd"
readOnly bool
secretRef *SecretReference
user string ="admin"
]],

  RBDVolumeSource = [[
fsType string
image! string
keyring string ="/etc/ceph/keyring"
monitors! []string atomic
pool string ="rbd"
readOnly bool
secretRef *LocalObjectReference
user string ="admin"
]],

  ResourceClaim = [[
name! string
request string
]],

  ResourceFieldSelector = [[
@atomic
containerName string
divisor Quantity
resource! string
]],

  ResourceHealth = [[
health string
message string
resourceID! string
]],

  ResourceRequirements = [[
claims []ResourceClaim map(name)
limits {}Quantity
requests {}Quantity
]],

  ResourceStatus = [[
name! string
resources []ResourceHealth map(resourceID)
]],

  SELinuxOptions = [[
level string
role string
type string
user string
]],

  ScaleIOPersistentVolumeSource = [[
fsType string ="xfs"
gateway! string
protectionDomain string
readOnly bool
secretRef! *SecretReference
sslEnabled bool
storageMode string ="ThinProvisioned"
storagePool string
system! string
volumeName string
]],

  ScaleIOVolumeSource = [[
fsType string ="xfs"
gateway! string
protectionDomain string
readOnly bool
secretRef! *LocalObjectReference
sslEnabled bool
storageMode string ="ThinProvisioned"
storagePool string
system! string
volumeName string
]],

  SeccompProfile = [[
localhostProfile string
type! string {Localhost|RuntimeDefault|Unconfined}
]],

  Secret = [[
@kind
data {}bytes
immutable bool
metadata meta.ObjectMeta
stringData {}string
type string
]],

  SecretEnvSource = [[
name string =""
optional bool
]],

  SecretKeySelector = [[
@atomic
key! string
name string =""
optional bool
]],

  SecretProjection = [[
items []KeyToPath atomic
name string =""
optional bool
]],

  SecretReference = [[
@atomic
name string
namespace string
]],

  SecretVolumeSource = [[
defaultMode int32
items []KeyToPath atomic
optional bool
secretName string
]],

  SecurityContext = [[
allowPrivilegeEscalation bool
appArmorProfile *AppArmorProfile
capabilities *Capabilities
privileged bool
procMount string {Default|Unmasked}
readOnlyRootFilesystem bool
runAsGroup int64
runAsNonRoot bool
runAsUser int64
seLinuxOptions *SELinuxOptions
seccompProfile *SeccompProfile
windowsOptions *WindowsSecurityContextOptions
]],

  Service = [[
@kind
metadata meta.ObjectMeta
spec ServiceSpec
status ServiceStatus
]],

  ServiceAccount = [[
@kind
automountServiceAccountToken bool
imagePullSecrets []LocalObjectReference atomic
metadata meta.ObjectMeta
secrets []ObjectReference map(name) patch:merge(name)
]],

  ServiceAccountTokenProjection = [[
audience string
expirationSeconds int64
path! string
]],

  ServicePort = [[
appProtocol string
name string
nodePort int32
port! int32
protocol string ="TCP" {SCTP|TCP|UDP}
targetPort IntOrString
]],

  ServiceSpec = [[
allocateLoadBalancerNodePorts bool
clusterIP string
clusterIPs []string atomic
externalIPs []string atomic
externalName string
externalTrafficPolicy string {Cluster|Local}
healthCheckNodePort int32
internalTrafficPolicy string {Cluster|Local}
ipFamilies []string atomic {|IPv4|IPv6}
ipFamilyPolicy string {PreferDualStack|RequireDualStack|SingleStack}
loadBalancerClass string
loadBalancerIP string
loadBalancerSourceRanges []string atomic
ports []ServicePort map(port,protocol) patch:merge(port)
publishNotReadyAddresses bool
selector {}string atomic
sessionAffinity string {ClientIP|None}
sessionAffinityConfig *SessionAffinityConfig
trafficDistribution string
type string {ClusterIP|ExternalName|LoadBalancer|NodePort}
]],

  ServiceStatus = [[
conditions []meta.Condition map(type) patch:merge(type)
loadBalancer LoadBalancerStatus
]],

  SessionAffinityConfig = "clientIP *ClientIPConfig",

  SleepAction = "seconds! int64",

  StorageOSPersistentVolumeSource = [[
fsType string
readOnly bool
secretRef *ObjectReference
volumeName string
volumeNamespace string
]],

  StorageOSVolumeSource = [[
fsType string
readOnly bool
secretRef *LocalObjectReference
volumeName string
volumeNamespace string
]],

  Sysctl = [[
name! string
value! string
]],

  TCPSocketAction = [[
host string
port! IntOrString
]],

  Taint = [[
effect! string {NoExecute|NoSchedule|PreferNoSchedule}
key! string
timeAdded meta.Time
value string
]],

  Toleration = [[
effect string {NoExecute|NoSchedule|PreferNoSchedule}
key string
operator string {Equal|Exists|Gt|Lt}
tolerationSeconds int64
value string
]],

  TopologySpreadConstraint = [[
labelSelector *meta.LabelSelector
matchLabelKeys []string atomic
maxSkew! int32
minDomains int32
nodeAffinityPolicy string {Honor|Ignore}
nodeTaintsPolicy string {Honor|Ignore}
topologyKey! string
whenUnsatisfiable! string {DoNotSchedule|ScheduleAnyway}
]],

  TypedLocalObjectReference = [[
@atomic
apiGroup string
kind! string
name! string
]],

  TypedObjectReference = [[
apiGroup string
kind! string
name! string
namespace string
]],

  Volume = [[
awsElasticBlockStore *AWSElasticBlockStoreVolumeSource
azureDisk *AzureDiskVolumeSource
azureFile *AzureFileVolumeSource
cephfs *CephFSVolumeSource
cinder *CinderVolumeSource
configMap *ConfigMapVolumeSource
csi *CSIVolumeSource
downwardAPI *DownwardAPIVolumeSource
emptyDir *EmptyDirVolumeSource
ephemeral *EphemeralVolumeSource
fc *FCVolumeSource
flexVolume *FlexVolumeSource
flocker *FlockerVolumeSource
gcePersistentDisk *GCEPersistentDiskVolumeSource
gitRepo *GitRepoVolumeSource
glusterfs *GlusterfsVolumeSource
hostPath *HostPathVolumeSource
image *ImageVolumeSource
iscsi *ISCSIVolumeSource
name! string
nfs *NFSVolumeSource
persistentVolumeClaim *PersistentVolumeClaimVolumeSource
photonPersistentDisk *PhotonPersistentDiskVolumeSource
portworxVolume *PortworxVolumeSource
projected *ProjectedVolumeSource
quobyte *QuobyteVolumeSource
rbd *RBDVolumeSource
scaleIO *ScaleIOVolumeSource
secret *SecretVolumeSource
storageos *StorageOSVolumeSource
vsphereVolume *VsphereVirtualDiskVolumeSource
]],

  VolumeDevice = [[
devicePath! string
name! string
]],

  VolumeMount = [[
mountPath! string
mountPropagation string {Bidirectional|HostToContainer|None}
name! string
readOnly bool
recursiveReadOnly string
subPath string
subPathExpr string
]],

  VolumeMountStatus = [[
mountPath! string
name! string
readOnly bool
recursiveReadOnly string
volumeStatus *VolumeStatus
]],

  VolumeNodeAffinity = "required *NodeSelector",

  VolumeProjection = [[
clusterTrustBundle *ClusterTrustBundleProjection
configMap *ConfigMapProjection
downwardAPI *DownwardAPIProjection
podCertificate *PodCertificateProjection
secret *SecretProjection
serviceAccountToken *ServiceAccountTokenProjection
]],

  VolumeResourceRequirements = [[
limits {}Quantity
requests {}Quantity
]],

  VolumeStatus = "image *ImageVolumeStatus",

  VsphereVirtualDiskVolumeSource = [[
fsType string
storagePolicyID string
storagePolicyName string
volumePath! string
]],

  WeightedPodAffinityTerm = [[
podAffinityTerm! PodAffinityTerm
weight! int32
]],

  WindowsSecurityContextOptions = [[
gmsaCredentialSpec string
gmsaCredentialSpecName string
hostProcess bool
runAsUserName string
]],

}
