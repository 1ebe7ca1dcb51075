--- What a real server has built in: requests for what of it this one does not serve are refused with 501.
local function set(...)
  local names = {}
  for _, name in ipairs { ... } do
    names[name] = true
  end
  return names
end


-- Group → names of resources.
local RESOURCES = {
  [""] = set("bindings", "componentstatuses", "endpoints", "limitranges", "nodes", "persistentvolumeclaims",
    "persistentvolumes", "podtemplates", "replicationcontrollers", "resourcequotas", "services", "events", "secrets",
    "serviceaccounts", "pods", "configmaps", "namespaces"),
  ["admissionregistration.k8s.io"] = set("mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
    "mutatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings",
    "validatingwebhookconfigurations"),
  ["apiextensions.k8s.io"] = set("customresourcedefinitions"),
  ["apiregistration.k8s.io"] = set("apiservices"),
  apps = set("controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"),
  ["authentication.k8s.io"] = set("selfsubjectreviews", "tokenreviews"),
  ["authorization.k8s.io"] = set("localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews",
    "subjectaccessreviews"),
  autoscaling = set("horizontalpodautoscalers"),
  batch = set("cronjobs", "jobs"),
  ["certificates.k8s.io"] = set("certificatesigningrequests"),
  ["coordination.k8s.io"] = set("leases"),
  ["discovery.k8s.io"] = set("endpointslices"),
  ["events.k8s.io"] = set("events"),
  ["flowcontrol.apiserver.k8s.io"] = set("flowschemas", "prioritylevelconfigurations"),
  ["networking.k8s.io"] = set("ingressclasses", "ingresses", "ipaddresses", "networkpolicies", "servicecidrs"),
  ["node.k8s.io"] = set("runtimeclasses"),
  policy = set("poddisruptionbudgets"),
  ["rbac.authorization.k8s.io"] = set("clusterrolebindings", "clusterroles", "rolebindings", "roles"),
  ["resource.k8s.io"] = set("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"),
  ["scheduling.k8s.io"] = set("priorityclasses"),
  ["storage.k8s.io"] = set("csidrivers", "csinodes", "csistoragecapacities", "storageclasses", "volumeattachments",
    "volumeattributesclasses"),
}

-- Parts of objects, by the resource's id.
local PARTS = {
  pods = set("attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "portforward", "proxy", "resize"),
  services = set("proxy"),
  nodes = set("proxy"),
  serviceaccounts = set("token"),
  namespaces = set("finalize"),
}

local M = {}


--- Whether a real server has that resource.
function M.resource(group, plural)
  return RESOURCES[group] ~= nil and RESOURCES[group][plural] == true
end


--- Whether a real server has that group built in.
function M.group(group)
  return RESOURCES[group] ~= nil
end


--- Whether objects of the resource with that id have a part of that name on a real server.
function M.part(id, name)
  return PARTS[id] ~= nil and PARTS[id][name] == true
end


return M
