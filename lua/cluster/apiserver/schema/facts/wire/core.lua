--- Written by tools/builtin-wire.lua; read by schema/protobuf.lua.
return {
  AWSElasticBlockStoreVolumeSource = [[
    fsType=2 partition=3 readOnly=4 volumeID=1]],
  Affinity = [[
    nodeAffinity=1 podAffinity=2 podAntiAffinity=3]],
  AppArmorProfile = [[
    localhostProfile=2 type=1]],
  AttachedVolume = [[
    devicePath=2 name=1]],
  AzureDiskVolumeSource = [[
    cachingMode=3 diskName=1 diskURI=2 fsType=4 kind=6 readOnly=5]],
  AzureFilePersistentVolumeSource = [[
    readOnly=3 secretName=1 secretNamespace=4 shareName=2]],
  AzureFileVolumeSource = [[
    readOnly=3 secretName=1 shareName=2]],
  Binding = [[
    metadata=1 target=2]],
  CSIPersistentVolumeSource = [[
    controllerExpandSecretRef=9 controllerPublishSecretRef=6 driver=1 fsType=4 nodeExpandSecretRef=10
    nodePublishSecretRef=8 nodeStageSecretRef=7 readOnly=3 volumeAttributes=5 volumeHandle=2]],
  CSIVolumeSource = [[
    driver=1 fsType=3 nodePublishSecretRef=5 readOnly=2 volumeAttributes=4]],
  Capabilities = [[
    add=1 drop=2]],
  CephFSPersistentVolumeSource = [[
    monitors=1 path=2 readOnly=6 secretFile=4 secretRef=5 user=3]],
  CephFSVolumeSource = [[
    monitors=1 path=2 readOnly=6 secretFile=4 secretRef=5 user=3]],
  CinderPersistentVolumeSource = [[
    fsType=2 readOnly=3 secretRef=4 volumeID=1]],
  CinderVolumeSource = [[
    fsType=2 readOnly=3 secretRef=4 volumeID=1]],
  ClientIPConfig = [[
    timeoutSeconds=1]],
  ClusterTrustBundleProjection = [[
    labelSelector=3 name=1 optional=5 path=4 signerName=2]],
  ConfigMap = [[
    binaryData=3 data=2 immutable=4 metadata=1]],
  ConfigMapEnvSource = [[
    name=1.1 optional=2]],
  ConfigMapKeySelector = [[
    key=2 name=1.1 optional=3]],
  ConfigMapNodeConfigSource = [[
    kubeletConfigKey=5 name=2 namespace=1 resourceVersion=4 uid=3]],
  ConfigMapProjection = [[
    items=2 name=1.1 optional=4]],
  ConfigMapVolumeSource = [[
    defaultMode=3 items=2 name=1.1 optional=4]],
  Container = [[
    args=4 command=3 env=7 envFrom=19 image=2 imagePullPolicy=14 lifecycle=12 livenessProbe=10 name=1
    ports=6 readinessProbe=11 resizePolicy=23 resources=8 restartPolicy=24 restartPolicyRules=25
    securityContext=15 startupProbe=22 stdin=16 stdinOnce=17 terminationMessagePath=13
    terminationMessagePolicy=20 tty=18 volumeDevices=21 volumeMounts=9 workingDir=5]],
  ContainerExtendedResourceRequest = [[
    containerName=1 requestName=3 resourceName=2]],
  ContainerImage = [[
    names=1 sizeBytes=2]],
  ContainerPort = [[
    containerPort=3 hostIP=5 hostPort=2 name=1 protocol=4]],
  ContainerResizePolicy = [[
    resourceName=1 restartPolicy=2]],
  ContainerRestartRule = [[
    action=1 exitCodes=2]],
  ContainerRestartRuleOnExitCodes = [[
    operator=1 values=2]],
  ContainerState = [[
    running=2 terminated=3 waiting=1]],
  ContainerStateRunning = [[
    startedAt=1]],
  ContainerStateTerminated = [[
    containerID=7 exitCode=1 finishedAt=6 message=4 reason=3 signal=2 startedAt=5]],
  ContainerStateWaiting = [[
    message=2 reason=1]],
  ContainerStatus = [[
    allocatedResources=10 allocatedResourcesStatus=14 containerID=8 image=6 imageID=7 lastState=3 name=1
    ready=4 resources=11 restartCount=5 started=9 state=2 stopSignal=15 user=13 volumeMounts=12]],
  ContainerUser = [[
    linux=1]],
  DaemonEndpoint = [[
    Port=1]],
  DownwardAPIProjection = [[
    items=1]],
  DownwardAPIVolumeFile = [[
    fieldRef=2 mode=4 path=1 resourceFieldRef=3]],
  DownwardAPIVolumeSource = [[
    defaultMode=2 items=1]],
  EmptyDirVolumeSource = [[
    medium=1 sizeLimit=2]],
  EndpointAddress = [[
    hostname=3 ip=1 nodeName=4 targetRef=2]],
  EndpointPort = [[
    appProtocol=4 name=1 port=2 protocol=3]],
  EndpointSubset = [[
    addresses=1 notReadyAddresses=2 ports=3]],
  Endpoints = [[
    metadata=1 subsets=2]],
  EnvFromSource = [[
    configMapRef=2 prefix=1 secretRef=3]],
  EnvVar = [[
    name=1 value=2 valueFrom=3]],
  EnvVarSource = [[
    configMapKeyRef=3 fieldRef=1 fileKeyRef=5 resourceFieldRef=2 secretKeyRef=4]],
  EphemeralContainer = [[
    args=1.4 command=1.3 env=1.7 envFrom=1.19 image=1.2 imagePullPolicy=1.14 lifecycle=1.12
    livenessProbe=1.10 name=1.1 ports=1.6 readinessProbe=1.11 resizePolicy=1.23 resources=1.8
    restartPolicy=1.24 restartPolicyRules=1.25 securityContext=1.15 startupProbe=1.22 stdin=1.16
    stdinOnce=1.17 targetContainerName=2 terminationMessagePath=1.13 terminationMessagePolicy=1.20
    tty=1.18 volumeDevices=1.21 volumeMounts=1.9 workingDir=1.5]],
  EphemeralVolumeSource = [[
    volumeClaimTemplate=1]],
  Event = [[
    action=12 count=8 eventTime=10 firstTimestamp=6 involvedObject=2 lastTimestamp=7 message=4 metadata=1
    reason=3 related=13 reportingComponent=14 reportingInstance=15 series=11 source=5 type=9]],
  EventSeries = [[
    count=1 lastObservedTime=2]],
  EventSource = [[
    component=1 host=2]],
  ExecAction = [[
    command=1]],
  FCVolumeSource = [[
    fsType=3 lun=2 readOnly=4 targetWWNs=1 wwids=5]],
  FileKeySelector = [[
    key=3 optional=4 path=2 volumeName=1]],
  FlexPersistentVolumeSource = [[
    driver=1 fsType=2 options=5 readOnly=4 secretRef=3]],
  FlexVolumeSource = [[
    driver=1 fsType=2 options=5 readOnly=4 secretRef=3]],
  FlockerVolumeSource = [[
    datasetName=1 datasetUUID=2]],
  GCEPersistentDiskVolumeSource = [[
    fsType=2 partition=3 pdName=1 readOnly=4]],
  GRPCAction = [[
    port=1 service=2]],
  GitRepoVolumeSource = [[
    directory=3 repository=1 revision=2]],
  GlusterfsPersistentVolumeSource = [[
    endpoints=1 endpointsNamespace=4 path=2 readOnly=3]],
  GlusterfsVolumeSource = [[
    endpoints=1 path=2 readOnly=3]],
  HTTPGetAction = [[
    host=3 httpHeaders=5 path=1 port=2 scheme=4]],
  HTTPHeader = [[
    name=1 value=2]],
  HostAlias = [[
    hostnames=2 ip=1]],
  HostIP = [[
    ip=1]],
  HostPathVolumeSource = [[
    path=1 type=2]],
  ISCSIPersistentVolumeSource = [[
    chapAuthDiscovery=8 chapAuthSession=11 fsType=5 initiatorName=12 iqn=2 iscsiInterface=4 lun=3
    portals=7 readOnly=6 secretRef=10 targetPortal=1]],
  ISCSIVolumeSource = [[
    chapAuthDiscovery=8 chapAuthSession=11 fsType=5 initiatorName=12 iqn=2 iscsiInterface=4 lun=3
    portals=7 readOnly=6 secretRef=10 targetPortal=1]],
  ImageVolumeSource = [[
    pullPolicy=2 reference=1]],
  ImageVolumeStatus = [[
    imageRef=1]],
  KeyToPath = [[
    key=1 mode=3 path=2]],
  Lifecycle = [[
    postStart=1 preStop=2 stopSignal=3]],
  LifecycleHandler = [[
    exec=1 httpGet=2 sleep=4 tcpSocket=3]],
  LinuxContainerUser = [[
    gid=2 supplementalGroups=3 uid=1]],
  LoadBalancerIngress = [[
    hostname=2 ip=1 ipMode=3 ports=4]],
  LoadBalancerStatus = [[
    ingress=1]],
  LocalObjectReference = [[
    name=1]],
  LocalVolumeSource = [[
    fsType=2 path=1]],
  ModifyVolumeStatus = [[
    status=2 targetVolumeAttributesClassName=1]],
  NFSVolumeSource = [[
    path=2 readOnly=3 server=1]],
  Namespace = [[
    metadata=1 spec=2 status=3]],
  NamespaceCondition = [[
    lastTransitionTime=4 message=6 reason=5 status=2 type=1]],
  NamespaceSpec = [[
    finalizers=1]],
  NamespaceStatus = [[
    conditions=2 phase=1]],
  Node = [[
    metadata=1 spec=2 status=3]],
  NodeAddress = [[
    address=2 type=1]],
  NodeAffinity = [[
    preferredDuringSchedulingIgnoredDuringExecution=2 requiredDuringSchedulingIgnoredDuringExecution=1]],
  NodeAllocatableResourceClaimStatus = [[
    containers=2 resourceClaimName=1 resources=3]],
  NodeCondition = [[
    lastHeartbeatTime=3 lastTransitionTime=4 message=6 reason=5 status=2 type=1]],
  NodeConfigSource = [[
    configMap=2]],
  NodeConfigStatus = [[
    active=2 assigned=1 error=4 lastKnownGood=3]],
  NodeDaemonEndpoints = [[
    kubeletEndpoint=1]],
  NodeFeatures = [[
    supplementalGroupsPolicy=1]],
  NodeRuntimeHandler = [[
    features=2 name=1]],
  NodeRuntimeHandlerFeatures = [[
    recursiveReadOnlyMounts=1 userNamespaces=2]],
  NodeSelector = [[
    nodeSelectorTerms=1]],
  NodeSelectorRequirement = [[
    key=1 operator=2 values=3]],
  NodeSelectorTerm = [[
    matchExpressions=1 matchFields=2]],
  NodeSpec = [[
    configSource=6 externalID=2 podCIDR=1 podCIDRs=7 providerID=3 taints=5 unschedulable=4]],
  NodeStatus = [[
    addresses=5 allocatable=2 capacity=1 conditions=4 config=11 daemonEndpoints=6 declaredFeatures=14
    features=13 images=8 nodeInfo=7 phase=3 runtimeHandlers=12 volumesAttached=10 volumesInUse=9]],
  NodeSwapStatus = [[
    capacity=1]],
  NodeSystemInfo = [[
    architecture=10 bootID=3 containerRuntimeVersion=6 kernelVersion=4 kubeProxyVersion=8
    kubeletVersion=7 machineID=1 operatingSystem=9 osImage=5 swap=11 systemUUID=2]],
  ObjectFieldSelector = [[
    apiVersion=1 fieldPath=2]],
  ObjectReference = [[
    apiVersion=5 fieldPath=7 kind=1 name=3 namespace=2 resourceVersion=6 uid=4]],
  PersistentVolume = [[
    metadata=1 spec=2 status=3]],
  PersistentVolumeClaim = [[
    metadata=1 spec=2 status=3]],
  PersistentVolumeClaimCondition = [[
    lastProbeTime=3 lastTransitionTime=4 message=6 reason=5 status=2 type=1]],
  PersistentVolumeClaimSpec = [[
    accessModes=1 dataSource=7 dataSourceRef=8 resources=2 selector=4 storageClassName=5
    volumeAttributesClassName=9 volumeMode=6 volumeName=3]],
  PersistentVolumeClaimStatus = [[
    accessModes=2 allocatedResourceStatuses=7 allocatedResources=5 capacity=3 conditions=4
    currentVolumeAttributesClassName=8 modifyVolumeStatus=9 phase=1]],
  PersistentVolumeClaimTemplate = [[
    metadata=1 spec=2]],
  PersistentVolumeClaimVolumeSource = [[
    claimName=1 readOnly=2]],
  PersistentVolumeSpec = [[
    accessModes=3 awsElasticBlockStore=2.2 azureDisk=2.16 azureFile=2.13 capacity=1 cephfs=2.9 cinder=2.8
    claimRef=4 csi=2.22 fc=2.10 flexVolume=2.12 flocker=2.11 gcePersistentDisk=2.1 glusterfs=2.4
    hostPath=2.3 iscsi=2.7 local=2.20 mountOptions=7 nfs=2.5 nodeAffinity=9
    persistentVolumeReclaimPolicy=5 photonPersistentDisk=2.17 portworxVolume=2.18 quobyte=2.15 rbd=2.6
    scaleIO=2.19 storageClassName=6 storageos=2.21 volumeAttributesClassName=10 volumeMode=8
    vsphereVolume=2.14]],
  PersistentVolumeStatus = [[
    lastPhaseTransitionTime=4 message=2 phase=1 reason=3]],
  PhotonPersistentDiskVolumeSource = [[
    fsType=2 pdID=1]],
  Pod = [[
    metadata=1 spec=2 status=3]],
  PodAffinity = [[
    preferredDuringSchedulingIgnoredDuringExecution=2 requiredDuringSchedulingIgnoredDuringExecution=1]],
  PodAffinityTerm = [[
    labelSelector=1 matchLabelKeys=5 mismatchLabelKeys=6 namespaceSelector=4 namespaces=2 topologyKey=3]],
  PodAntiAffinity = [[
    preferredDuringSchedulingIgnoredDuringExecution=2 requiredDuringSchedulingIgnoredDuringExecution=1]],
  PodCertificateProjection = [[
    certificateChainPath=6 credentialBundlePath=4 keyPath=5 keyType=2 maxExpirationSeconds=3 signerName=1
    userAnnotations=7]],
  PodCondition = [[
    lastProbeTime=3 lastTransitionTime=4 message=6 observedGeneration=7 reason=5 status=2 type=1]],
  PodDNSConfig = [[
    nameservers=1 options=3 searches=2]],
  PodDNSConfigOption = [[
    name=1 value=2]],
  PodExtendedResourceClaimStatus = [[
    requestMappings=1 resourceClaimName=2]],
  PodIP = [[
    ip=1]],
  PodOS = [[
    name=1]],
  PodReadinessGate = [[
    conditionType=1]],
  PodResourceClaim = [[
    name=1 resourceClaimName=3 resourceClaimTemplateName=4]],
  PodResourceClaimStatus = [[
    name=1 resourceClaimName=2]],
  PodSchedulingGate = [[
    name=1]],
  PodSchedulingGroup = [[
    podGroupName=1]],
  PodSecurityContext = [[
    appArmorProfile=11 fsGroup=5 fsGroupChangePolicy=9 runAsGroup=6 runAsNonRoot=3 runAsUser=2
    seLinuxChangePolicy=13 seLinuxOptions=1 seccompProfile=10 supplementalGroups=4
    supplementalGroupsPolicy=12 sysctls=7 windowsOptions=8]],
  PodSpec = [[
    activeDeadlineSeconds=5 affinity=18 automountServiceAccountToken=21 containers=2 dnsConfig=26
    dnsPolicy=6 enableServiceLinks=30 ephemeralContainers=34 hostAliases=23 hostIPC=13 hostNetwork=11
    hostPID=12 hostUsers=37 hostname=16 hostnameOverride=41 imagePullSecrets=15 initContainers=20
    nodeName=10 nodeSelector=7 os=36 overhead=32 preemptionPolicy=31 priority=25 priorityClassName=24
    readinessGates=28 resourceClaims=39 resources=40 restartPolicy=3 runtimeClassName=29 schedulerName=19
    schedulingGates=38 schedulingGroup=43 securityContext=14 serviceAccount=9 serviceAccountName=8
    setHostnameAsFQDN=35 shareProcessNamespace=27 subdomain=17 terminationGracePeriodSeconds=4
    tolerations=22 topologySpreadConstraints=33 volumes=1]],
  PodStatus = [[
    allocatedResources=19 conditions=2 containerStatuses=8 ephemeralContainerStatuses=13
    extendedResourceClaimStatus=18 hostIP=5 hostIPs=16 initContainerStatuses=10 message=3
    nodeAllocatableResourceClaimStatuses=21 nominatedNodeName=11 observedGeneration=17 phase=1 podIP=6
    podIPs=12 qosClass=9 reason=4 resize=14 resourceClaimStatuses=15 resources=20 startTime=7]],
  PodTemplate = [[
    metadata=1 template=2]],
  PodTemplateSpec = [[
    metadata=1 spec=2]],
  PortStatus = [[
    error=3 port=1 protocol=2]],
  PortworxVolumeSource = [[
    fsType=2 readOnly=3 volumeID=1]],
  PreferredSchedulingTerm = [[
    preference=2 weight=1]],
  Probe = [[
    exec=1.1 failureThreshold=6 grpc=1.4 httpGet=1.2 initialDelaySeconds=2 periodSeconds=4
    successThreshold=5 tcpSocket=1.3 terminationGracePeriodSeconds=7 timeoutSeconds=3]],
  ProjectedVolumeSource = [[
    defaultMode=2 sources=1]],
  QuobyteVolumeSource = [[
    group=5 readOnly=3 registry=1 tenant=6 user=4 volume=2]],
  RBDPersistentVolumeSource = [[
    fsType=3 image=2 keyring=6 monitors=1 pool=4 readOnly=8 secretRef=7 user=5]],
  RBDVolumeSource = [[
    fsType=3 image=2 keyring=6 monitors=1 pool=4 readOnly=8 secretRef=7 user=5]],
  ResourceClaim = [[
    name=1 request=2]],
  ResourceFieldSelector = [[
    containerName=1 divisor=3 resource=2]],
  ResourceHealth = [[
    health=2 message=6 resourceID=1]],
  ResourceRequirements = [[
    claims=3 limits=1 requests=2]],
  ResourceStatus = [[
    name=1 resources=2]],
  SELinuxOptions = [[
    level=4 role=2 type=3 user=1]],
  ScaleIOPersistentVolumeSource = [[
    fsType=9 gateway=1 protectionDomain=5 readOnly=10 secretRef=3 sslEnabled=4 storageMode=7
    storagePool=6 system=2 volumeName=8]],
  ScaleIOVolumeSource = [[
    fsType=9 gateway=1 protectionDomain=5 readOnly=10 secretRef=3 sslEnabled=4 storageMode=7
    storagePool=6 system=2 volumeName=8]],
  SeccompProfile = [[
    localhostProfile=2 type=1]],
  Secret = [[
    data=2 immutable=5 metadata=1 stringData=4 type=3]],
  SecretEnvSource = [[
    name=1.1 optional=2]],
  SecretKeySelector = [[
    key=2 name=1.1 optional=3]],
  SecretProjection = [[
    items=2 name=1.1 optional=4]],
  SecretReference = [[
    name=1 namespace=2]],
  SecretVolumeSource = [[
    defaultMode=3 items=2 optional=4 secretName=1]],
  SecurityContext = [[
    allowPrivilegeEscalation=7 appArmorProfile=12 capabilities=1 privileged=2 procMount=9
    readOnlyRootFilesystem=6 runAsGroup=8 runAsNonRoot=5 runAsUser=4 seLinuxOptions=3 seccompProfile=11
    windowsOptions=10]],
  Service = [[
    metadata=1 spec=2 status=3]],
  ServiceAccount = [[
    automountServiceAccountToken=4 imagePullSecrets=3 metadata=1 secrets=2]],
  ServiceAccountTokenProjection = [[
    audience=1 expirationSeconds=2 path=3]],
  ServicePort = [[
    appProtocol=6 name=1 nodePort=5 port=3 protocol=2 targetPort=4]],
  ServiceSpec = [[
    allocateLoadBalancerNodePorts=20 clusterIP=3 clusterIPs=18 externalIPs=5 externalName=10
    externalTrafficPolicy=11 healthCheckNodePort=12 internalTrafficPolicy=22 ipFamilies=19
    ipFamilyPolicy=17 loadBalancerClass=21 loadBalancerIP=8 loadBalancerSourceRanges=9 ports=1
    publishNotReadyAddresses=13 selector=2 sessionAffinity=7 sessionAffinityConfig=14
    trafficDistribution=23 type=4]],
  ServiceStatus = [[
    conditions=2 loadBalancer=1]],
  SessionAffinityConfig = [[
    clientIP=1]],
  SleepAction = [[
    seconds=1]],
  StorageOSPersistentVolumeSource = [[
    fsType=3 readOnly=4 secretRef=5 volumeName=1 volumeNamespace=2]],
  StorageOSVolumeSource = [[
    fsType=3 readOnly=4 secretRef=5 volumeName=1 volumeNamespace=2]],
  Sysctl = [[
    name=1 value=2]],
  TCPSocketAction = [[
    host=2 port=1]],
  Taint = [[
    effect=3 key=1 timeAdded=4 value=2]],
  Toleration = [[
    effect=4 key=1 operator=2 tolerationSeconds=5 value=3]],
  TopologySpreadConstraint = [[
    labelSelector=4 matchLabelKeys=8 maxSkew=1 minDomains=5 nodeAffinityPolicy=6 nodeTaintsPolicy=7
    topologyKey=2 whenUnsatisfiable=3]],
  TypedLocalObjectReference = [[
    apiGroup=1 kind=2 name=3]],
  TypedObjectReference = [[
    apiGroup=1 kind=2 name=3 namespace=4]],
  Volume = [[
    awsElasticBlockStore=2.4 azureDisk=2.22 azureFile=2.18 cephfs=2.14 cinder=2.13 configMap=2.19
    csi=2.28 downwardAPI=2.16 emptyDir=2.2 ephemeral=2.29 fc=2.17 flexVolume=2.12 flocker=2.15
    gcePersistentDisk=2.3 gitRepo=2.5 glusterfs=2.9 hostPath=2.1 image=2.30 iscsi=2.8 name=1 nfs=2.7
    persistentVolumeClaim=2.10 photonPersistentDisk=2.23 portworxVolume=2.24 projected=2.26 quobyte=2.21
    rbd=2.11 scaleIO=2.25 secret=2.6 storageos=2.27 vsphereVolume=2.20]],
  VolumeDevice = [[
    devicePath=2 name=1]],
  VolumeMount = [[
    mountPath=3 mountPropagation=5 name=1 readOnly=2 recursiveReadOnly=7 subPath=4 subPathExpr=6]],
  VolumeMountStatus = [[
    mountPath=2 name=1 readOnly=3 recursiveReadOnly=4 volumeStatus=5]],
  VolumeNodeAffinity = [[
    required=1]],
  VolumeProjection = [[
    clusterTrustBundle=5 configMap=3 downwardAPI=2 podCertificate=6 secret=1 serviceAccountToken=4]],
  VolumeResourceRequirements = [[
    limits=1 requests=2]],
  VolumeStatus = [[
    image=1]],
  VsphereVirtualDiskVolumeSource = [[
    fsType=2 storagePolicyID=4 storagePolicyName=3 volumePath=1]],
  WeightedPodAffinityTerm = [[
    podAffinityTerm=2 weight=1]],
  WindowsSecurityContextOptions = [[
    gmsaCredentialSpec=2 gmsaCredentialSpecName=1 hostProcess=4 runAsUserName=3]],
}
