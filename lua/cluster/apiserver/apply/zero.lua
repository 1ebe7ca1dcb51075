--- What an object of a built-in kind has before anything is set: the parts that upstream's Go types always
--- write. Field management compares a new object with this, so that "spec" is nobody's.
--- Rules: the types of k8s.io/api: fields without omitempty, and structs that are no pointers.
local host = require "cluster.host"

local null = host.json.null

local POD_TEMPLATE = { metadata = {}, spec = { containers = null } }
local POD_NUMBERS = { desiredNumberScheduled = 0, currentNumberScheduled = 0, numberMisscheduled = 0, numberReady = 0 }
local ROLE_REF = { apiGroup = "", kind = "", name = "" }
local SCALE_TARGET = { scaleTargetRef = { kind = "", name = "" }, maxReplicas = 0 }
local CRD_NAMES = { plural = "", kind = "" }

local SPEC = { spec = {} }
local SPEC_AND_STATUS = { spec = {}, status = {} }
local REVIEW = { spec = {}, status = { allowed = false } }
local BALANCED = { spec = {}, status = { loadBalancer = {} } }

-- By group/version, then by kind. Kinds that have nothing but metadata are left out.
local OBJECTS = {
  ["admissionregistration.k8s.io/v1"] = {
    MutatingAdmissionPolicy = SPEC,
    MutatingAdmissionPolicyBinding = SPEC,
    ValidatingAdmissionPolicy = SPEC_AND_STATUS,
    ValidatingAdmissionPolicyBinding = SPEC,
  },
  ["apiextensions.k8s.io/v1"] = {
    CustomResourceDefinition = {
      spec = { group = "", names = CRD_NAMES, scope = "", versions = null },
      status = { conditions = null, acceptedNames = CRD_NAMES, storedVersions = null },
    },
  },
  ["apps/v1"] = {
    ControllerRevision = { data = null, revision = 0 },
    DaemonSet = { spec = { selector = null, template = POD_TEMPLATE, updateStrategy = {} }, status = POD_NUMBERS },
    Deployment = { spec = { selector = null, template = POD_TEMPLATE, strategy = {} }, status = {} },
    ReplicaSet = { spec = { selector = null, template = POD_TEMPLATE }, status = { replicas = 0 } },
    StatefulSet = {
      spec = { selector = null, template = POD_TEMPLATE, serviceName = "", updateStrategy = {} },
      status = { replicas = 0, availableReplicas = 0 },
    },
  },
  ["autoscaling/v1"] = {
    HorizontalPodAutoscaler = { spec = SCALE_TARGET, status = { currentReplicas = 0, desiredReplicas = 0 } },
    Scale = { spec = {}, status = { replicas = 0 } },
  },
  ["autoscaling/v2"] = {
    HorizontalPodAutoscaler = { spec = SCALE_TARGET, status = { desiredReplicas = 0, currentMetrics = null } },
  },
  ["batch/v1"] = {
    CronJob = {
      spec = { schedule = "", jobTemplate = { metadata = {}, spec = { template = POD_TEMPLATE } } },
      status = {},
    },
    Job = { spec = { template = POD_TEMPLATE }, status = {} },
  },
  ["certificates.k8s.io/v1"] = {
    CertificateSigningRequest = { spec = { request = null, signerName = "" }, status = {} },
  },
  ["coordination.k8s.io/v1"] = { Lease = SPEC },
  ["discovery.k8s.io/v1"] = { EndpointSlice = { addressType = "", endpoints = null, ports = null } },
  ["events.k8s.io/v1"] = {
    Event = {
      eventTime = null,
      regarding = {},
      deprecatedSource = {},
      deprecatedFirstTimestamp = null,
      deprecatedLastTimestamp = null,
    },
  },
  ["networking.k8s.io/v1"] = {
    IPAddress = SPEC,
    Ingress = BALANCED,
    IngressClass = SPEC,
    NetworkPolicy = { spec = { podSelector = {} } },
    ServiceCIDR = SPEC_AND_STATUS,
  },
  ["node.k8s.io/v1"] = { RuntimeClass = { handler = "" } },
  ["policy/v1"] = {
    PodDisruptionBudget = {
      spec = {},
      status = { disruptionsAllowed = 0, currentHealthy = 0, desiredHealthy = 0, expectedPods = 0 },
    },
  },
  ["authentication.k8s.io/v1"] = {
    TokenRequest = {
      spec = { audiences = null, boundObjectRef = null }, status = { token = "", expirationTimestamp = null },
    },
    TokenReview = { spec = {}, status = { user = {} } },
  },
  ["authorization.k8s.io/v1"] = {
    LocalSubjectAccessReview = REVIEW,
    SelfSubjectAccessReview = REVIEW,
    SubjectAccessReview = REVIEW,
  },
  ["rbac.authorization.k8s.io/v1"] = {
    ClusterRole = { rules = null },
    ClusterRoleBinding = { roleRef = ROLE_REF },
    Role = { rules = null },
    RoleBinding = { roleRef = ROLE_REF },
  },
  ["scheduling.k8s.io/v1"] = { PriorityClass = { value = 0 } },
  ["storage.k8s.io/v1"] = {
    CSIDriver = SPEC,
    CSINode = { spec = { drivers = null } },
    CSIStorageCapacity = { storageClassName = "" },
    StorageClass = { provisioner = "" },
    VolumeAttachment = { spec = { attacher = "", source = {}, nodeName = "" }, status = { attached = false } },
    VolumeAttributesClass = { driverName = "" },
  },
  v1 = {
    Binding = { target = {} },
    Event = {
      involvedObject = {},
      source = {},
      firstTimestamp = null,
      lastTimestamp = null,
      eventTime = null,
      reportingComponent = "",
      reportingInstance = "",
    },
    LimitRange = { spec = { limits = null } },
    Namespace = SPEC_AND_STATUS,
    Node = { spec = {}, status = { daemonEndpoints = { kubeletEndpoint = { Port = 0 } }, nodeInfo = {} } },
    PersistentVolume = SPEC_AND_STATUS,
    PersistentVolumeClaim = { spec = { resources = {} }, status = {} },
    Pod = { spec = { containers = null }, status = {} },
    PodTemplate = { template = POD_TEMPLATE },
    ReplicationController = { spec = {}, status = { replicas = 0 } },
    ResourceQuota = SPEC_AND_STATUS,
    Service = BALANCED,
  },
}

local ONLY_METADATA = { metadata = {} }

for _, kinds in pairs(OBJECTS) do
  for kind, object in pairs(kinds) do
    local whole = { metadata = ONLY_METADATA.metadata }
    for name, value in pairs(object) do
      whole[name] = value
    end
    kinds[kind] = whole
  end
end

local M = {}


--- The object that a new one of the resource `res` is compared with. Shared; never changed.
function M.of(res)
  if not res.builtin then
    return {}
  end
  local kinds = OBJECTS[res.api_version]
  return kinds and kinds[res.kind] or ONLY_METADATA
end


return M
