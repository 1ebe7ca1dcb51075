--- What the Go types of the built-in kinds have besides what OpenAPI publishes of them (schema/facts/): which
--- scalars that may be left out are pointers, so that zero is not the same as nothing; and what is written even when
--- it is empty. By the name of the type, after its package where two have one name: fields, with a blank between them.
--- Source: the types.go files of k8s.io/api and apimachinery/pkg/apis/meta/v1.
local M = {}

--- Scalars that are pointers: zero, "" and false stay.
M.pointers = {
  AppArmorProfile = "localhostProfile",
  AzureDiskVolumeSource = "cachingMode fsType readOnly kind",
  AzureFilePersistentVolumeSource = "secretNamespace",
  CSIVolumeSource = "readOnly fsType",
  ClientIPConfig = "timeoutSeconds",
  ClusterTrustBundleProjection = "name signerName optional",
  ConfigMap = "immutable",
  ConfigMapEnvSource = "optional",
  ConfigMapKeySelector = "optional",
  ConfigMapProjection = "optional",
  ConfigMapVolumeSource = "defaultMode optional",
  Container = "restartPolicy",
  ContainerStatus = "started stopSignal",
  CustomResourceDefinitionVersion = "deprecationWarning",
  CustomResourceSubresourceScale = "labelSelectorPath",
  DeploymentSpec = "replicas revisionHistoryLimit progressDeadlineSeconds",
  DeploymentStatus = "terminatingReplicas collisionCount",
  DownwardAPIVolumeFile = "mode",
  DownwardAPIVolumeSource = "defaultMode",
  Endpoint = "hostname nodeName zone",
  EndpointAddress = "nodeName",
  EndpointConditions = "ready serving terminating",
  ["core.EndpointPort"] = "appProtocol",
  ["discovery.EndpointPort"] = "name protocol port appProtocol",
  EphemeralContainer = "restartPolicy",
  FCVolumeSource = "lun",
  FileKeySelector = "optional",
  GRPCAction = "service",
  GlusterfsPersistentVolumeSource = "endpointsNamespace",
  HostPathVolumeSource = "type",
  ISCSIPersistentVolumeSource = "initiatorName",
  ISCSIVolumeSource = "initiatorName",
  JSONSchemaProps = "$ref maximum minimum multipleOf maxLength minLength maxItems minItems maxProperties "
    .. "minProperties x-kubernetes-preserve-unknown-fields x-kubernetes-list-type x-kubernetes-map-type",
  JobSpec = "parallelism completions activeDeadlineSeconds backoffLimit backoffLimitPerIndex "
    .. "maxFailedIndexes manualSelector ttlSecondsAfterFinished completionMode suspend "
    .. "podReplacementPolicy managedBy",
  JobStatus = "terminating failedIndexes ready",
  KeyToPath = "mode",
  LeaseSpec = "holderIdentity leaseDurationSeconds leaseTransitions strategy preferredHolder",
  Lifecycle = "stopSignal",
  LoadBalancerIngress = "ipMode",
  LocalVolumeSource = "fsType",
  NodeFeatures = "supplementalGroupsPolicy",
  NodeRuntimeHandlerFeatures = "recursiveReadOnlyMounts userNamespaces",
  NodeSwapStatus = "capacity",
  ObjectMeta = "deletionGracePeriodSeconds",
  OwnerReference = "controller blockOwnerDeletion",
  PersistentVolumeClaimSpec = "storageClassName volumeMode volumeAttributesClassName",
  PersistentVolumeClaimStatus = "currentVolumeAttributesClassName",
  PersistentVolumeSpec = "volumeMode volumeAttributesClassName",
  PodCertificateProjection = "maxExpirationSeconds",
  PodDNSConfigOption = "value",
  PodDisruptionBudgetSpec = "unhealthyPodEvictionPolicy",
  PodFailurePolicyOnExitCodesRequirement = "containerName",
  PodResourceClaim = "resourceClaimName resourceClaimTemplateName",
  PodResourceClaimStatus = "resourceClaimName",
  PodSchedulingGroup = "podGroupName",
  PodSecurityContext = "runAsUser runAsGroup runAsNonRoot supplementalGroupsPolicy fsGroup fsGroupChangePolicy "
    .. "seLinuxChangePolicy",
  PodSpec = "terminationGracePeriodSeconds activeDeadlineSeconds automountServiceAccountToken "
    .. "shareProcessNamespace priority runtimeClassName enableServiceLinks preemptionPolicy "
    .. "setHostnameAsFQDN hostUsers hostnameOverride",
  PortStatus = "error",
  Preconditions = "uid resourceVersion",
  Probe = "terminationGracePeriodSeconds",
  ProjectedVolumeSource = "defaultMode",
  ReplicaSetSpec = "replicas",
  ReplicaSetStatus = "terminatingReplicas",
  ResourceHealth = "message",
  RollingUpdateStatefulSetStrategy = "partition",
  SeccompProfile = "localhostProfile",
  Secret = "immutable",
  SecretEnvSource = "optional",
  SecretKeySelector = "optional",
  SecretProjection = "optional",
  SecretVolumeSource = "defaultMode optional",
  SecurityContext = "privileged runAsUser runAsGroup runAsNonRoot readOnlyRootFilesystem "
    .. "allowPrivilegeEscalation procMount",
  ServiceAccount = "automountServiceAccountToken",
  ServiceAccountTokenProjection = "expirationSeconds",
  ServicePort = "appProtocol",
  ServiceSpec = "ipFamilyPolicy allocateLoadBalancerNodePorts loadBalancerClass internalTrafficPolicy "
    .. "trafficDistribution",
  StatefulSetSpec = "replicas revisionHistoryLimit",
  StatefulSetStatus = "collisionCount",
  SuccessPolicyRule = "succeededIndexes succeededCount",
  Toleration = "tolerationSeconds",
  TopologySpreadConstraint = "minDomains nodeAffinityPolicy nodeTaintsPolicy",
  TypedLocalObjectReference = "apiGroup",
  TypedObjectReference = "apiGroup namespace",
  VolumeMount = "recursiveReadOnly mountPropagation",
  VolumeMountStatus = "recursiveReadOnly",
  WindowsSecurityContextOptions = "gmsaCredentialSpecName gmsaCredentialSpec runAsUserName hostProcess",
}

--- Scalars that may be left out and are written all the same.
M.always = {
  ["core.Event"] = "reportingComponent reportingInstance",
  NodeRuntimeHandler = "name",
  PodDisruptionBudgetStatus = "disruptionsAllowed currentHealthy desiredHealthy expectedPods",
  PodFailurePolicyOnPodConditionsPattern = "status",
  RoleRef = "apiGroup",
  StatefulSetOrdinals = "start",
  StatefulSetSpec = "serviceName",
  StatefulSetStatus = "availableReplicas",
}

--- Scalars that have to be given and are left out all the same when they are zero.
M.dropped = {
  ContainerRestartRule = "action",
  ContainerRestartRuleOnExitCodes = "operator",
  ImageVolumeStatus = "imageRef",
  PodCertificateProjection = "signerName keyType",
}

--- Lists and pointers that are written as null when there is nothing in them.
M.nulls = {
  AzureFilePersistentVolumeSource = "secretNamespace",
  ClusterRole = "rules",
  ContainerImage = "names",
  EndpointSlice = "endpoints ports",
  GRPCAction = "service",
  ProjectedVolumeSource = "sources",
  Role = "rules",
  TypedLocalObjectReference = "apiGroup",
  TypedObjectReference = "apiGroup",
}

--- Amounts that are no pointers: "0" when they are not given.
M.amounts = {
  ResourceFieldSelector = "divisor",
}

--- Instants that are no pointers: null when they are not set.
M.times = {
  Condition = "lastTransitionTime",
  ContainerStateRunning = "startedAt",
  ContainerStateTerminated = "startedAt finishedAt",
  DeploymentCondition = "lastUpdateTime lastTransitionTime",
  Event = "firstTimestamp lastTimestamp eventTime deprecatedFirstTimestamp deprecatedLastTimestamp",
  EventSeries = "lastObservedTime",
  JobCondition = "lastProbeTime lastTransitionTime",
  NamespaceCondition = "lastTransitionTime",
  NodeCondition = "lastHeartbeatTime lastTransitionTime",
  PersistentVolumeClaimCondition = "lastProbeTime lastTransitionTime",
  PodCondition = "lastProbeTime lastTransitionTime",
  ReplicaSetCondition = "lastTransitionTime",
  StatefulSetCondition = "lastTransitionTime",
}


return M
