--- The built-in kinds that are served, by group version and plural; kinds/resources.lua has a real server's
--- descriptions of them, and of the refused kinds.
---
--- An entry may have
---   rules       the module with the kind's strategy (init.lua of the API server lists the hooks of a strategy), in
---               resources/ unless it has a dot; a word after it picks one of several. Without it the kind is stored,
---               and checked against its schema only
---   id          the resource as which it is stored, if that is another one; the strategy then has `convert`
---   stored      the version of that resource, if it is another one
---   deprecated  a text that warns its users
return {
  v1 = {
    bindings = { rules = "resources.pod.parts Binding" },
    componentstatuses = {
      rules = "componentstatuses", deprecated = "v1 ComponentStatus is deprecated in v1.19+",
    },
    configmaps = { rules = "configmaps" },
    endpoints = {
      rules = "endpoints",
      deprecated = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    },
    events = { rules = "events core" },
    limitranges = { rules = "limitranges" },
    namespaces = { rules = "namespaces" },
    nodes = { rules = "nodes" },
    persistentvolumeclaims = { rules = "persistentvolumeclaims" },
    persistentvolumes = { rules = "persistentvolumes" },
    pods = { rules = "pods" },
    podtemplates = { rules = "podtemplates" },
    replicationcontrollers = { rules = "replicationcontrollers" },
    resourcequotas = { rules = "resourcequotas" },
    secrets = { rules = "secrets" },
    serviceaccounts = { rules = "serviceaccounts" },
    services = { rules = "services" },
  },
  ["admissionregistration.k8s.io/v1"] = {
    mutatingadmissionpolicies = { rules = "resources.admission.mutatingpolicies" },
    mutatingadmissionpolicybindings = { rules = "resources.admission.mutatingbindings" },
    mutatingwebhookconfigurations = { rules = "resources.admission.mutatingwebhooks" },
    validatingadmissionpolicies = { rules = "resources.admission.policies" },
    validatingadmissionpolicybindings = { rules = "resources.admission.validatingbindings" },
    validatingwebhookconfigurations = { rules = "resources.admission.validatingwebhooks" },
  },
  ["apiextensions.k8s.io/v1"] = { customresourcedefinitions = { rules = "customresourcedefinitions" } },
  ["apiregistration.k8s.io/v1"] = { apiservices = { rules = "apiservices" } },
  ["apps/v1"] = {
    controllerrevisions = { rules = "controllerrevisions" },
    daemonsets = { rules = "daemonsets" },
    deployments = { rules = "deployments" },
    replicasets = { rules = "replicasets" },
    statefulsets = { rules = "statefulsets" },
  },
  ["authentication.k8s.io/v1"] = {
    selfsubjectreviews = { rules = "auth.reviews SelfSubjectReview" },
    tokenreviews = { rules = "auth.reviews TokenReview" },
  },
  ["authorization.k8s.io/v1"] = {
    localsubjectaccessreviews = { rules = "auth.reviews LocalSubjectAccessReview" },
    selfsubjectaccessreviews = { rules = "auth.reviews SelfSubjectAccessReview" },
    selfsubjectrulesreviews = { rules = "auth.reviews SelfSubjectRulesReview" },
    subjectaccessreviews = { rules = "auth.reviews SubjectAccessReview" },
  },
  ["autoscaling/v1"] = {
    horizontalpodautoscalers = {
      rules = "resources.autoscaling.v1", id = "horizontalpodautoscalers.autoscaling", stored = "v2",
    },
  },
  ["autoscaling/v2"] = { horizontalpodautoscalers = { rules = "resources.autoscaling.autoscalers" } },
  ["batch/v1"] = { cronjobs = { rules = "cronjobs" }, jobs = { rules = "jobs" } },
  ["certificates.k8s.io/v1"] = {
    certificatesigningrequests = { rules = "resources.certificates.requests" },
  },
  ["coordination.k8s.io/v1"] = { leases = { rules = "leases" } },
  ["discovery.k8s.io/v1"] = { endpointslices = { rules = "endpointslices" } },
  ["events.k8s.io/v1"] = { events = { rules = "events events", id = "events" } },
  ["flowcontrol.apiserver.k8s.io/v1"] = {
    flowschemas = { rules = "resources.flowcontrol.flowschemas" },
    prioritylevelconfigurations = { rules = "resources.flowcontrol.prioritylevels" },
  },
  ["networking.k8s.io/v1"] = {
    ingressclasses = { rules = "ingressclasses" },
    ingresses = { rules = "ingresses" },
    ipaddresses = { rules = "ipaddresses" },
    networkpolicies = { rules = "networkpolicies" },
    servicecidrs = { rules = "servicecidrs" },
  },
  ["node.k8s.io/v1"] = { runtimeclasses = { rules = "runtimeclasses" } },
  ["policy/v1"] = { poddisruptionbudgets = { rules = "poddisruptionbudgets" } },
  ["rbac.authorization.k8s.io/v1"] = {
    clusterrolebindings = { rules = "rbac ClusterRoleBinding" },
    clusterroles = { rules = "rbac ClusterRole" },
    rolebindings = { rules = "rbac RoleBinding" },
    roles = { rules = "rbac Role" },
  },
  ["resource.k8s.io/v1"] = {
    deviceclasses = { rules = "resources.devices.deviceclasses" },
    resourceclaims = { rules = "resources.devices.claims" },
    resourceclaimtemplates = { rules = "resources.devices.templates" },
    resourceslices = { rules = "resources.devices.slices" },
  },
  ["scheduling.k8s.io/v1"] = { priorityclasses = { rules = "priorityclasses" } },
  ["storage.k8s.io/v1"] = {
    csidrivers = { rules = "resources.storage.csidrivers" },
    csinodes = { rules = "resources.storage.csinodes" },
    csistoragecapacities = { rules = "resources.storage.csistoragecapacities" },
    storageclasses = { rules = "resources.storage.storageclasses" },
    volumeattachments = { rules = "resources.storage.volumeattachments" },
    volumeattributesclasses = { rules = "resources.storage.volumeattributesclasses" },
  },
}
