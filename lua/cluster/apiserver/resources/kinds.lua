--- The built-in kinds that are served, by group version and plural; facts/resources.lua has a real server's
--- descriptions of them, and of the refused kinds.
---
--- An entry may have
---   rules       the module with the kind's strategy (init.lua of the API server lists the hooks of a strategy), in
---               resources/ unless it has a dot; a word after it picks one of several. Without it the kind is stored,
---               and checked against its schema only
---   id          the resource as which it is stored, if that is another one; the strategy then has `convert`
---   deprecated  a text that warns its users
return {
  v1 = {
    configmaps = { rules = "configmaps" },
    endpoints = {
      rules = "endpoints",
      deprecated = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
    },
    events = { rules = "events core" },
    namespaces = { rules = "namespaces" },
    nodes = { rules = "nodes" },
    persistentvolumeclaims = { rules = "persistentvolumeclaims" },
    persistentvolumes = { rules = "persistentvolumes" },
    pods = { rules = "pods" },
    podtemplates = { rules = "podtemplates" },
    secrets = { rules = "secrets" },
    serviceaccounts = { rules = "serviceaccounts" },
    services = { rules = "services" },
  },
  ["apiextensions.k8s.io/v1"] = { customresourcedefinitions = { rules = "customresourcedefinitions" } },
  ["apps/v1"] = {
    controllerrevisions = { rules = "controllerrevisions" },
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
  ["batch/v1"] = { jobs = { rules = "jobs" } },
  ["coordination.k8s.io/v1"] = { leases = { rules = "leases" } },
  ["discovery.k8s.io/v1"] = { endpointslices = { rules = "endpointslices" } },
  ["events.k8s.io/v1"] = { events = { rules = "events events", id = "events" } },
  ["networking.k8s.io/v1"] = { ingressclasses = { rules = "ingressclasses" } },
  ["policy/v1"] = { poddisruptionbudgets = { rules = "poddisruptionbudgets" } },
  ["rbac.authorization.k8s.io/v1"] = {
    clusterrolebindings = { rules = "rbac ClusterRoleBinding" },
    clusterroles = { rules = "rbac ClusterRole" },
    rolebindings = { rules = "rbac RoleBinding" },
    roles = { rules = "rbac Role" },
  },
}
