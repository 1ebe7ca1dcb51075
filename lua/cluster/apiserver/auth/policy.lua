--- The cluster roles that a server starts with, and who has them: those for people and for everybody. The roles of a
--- control plane's own parts are not among them.
---
--- A rule is { verbs, groups, resources } or { verbs, urls = }, each a text of words; "core" is the group "". `into`
--- and `from` are labels without their prefix: which roles this one is summed up in, and which it sums up.
--- Facts: kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go.
local M = {}


--- name → { into =, from =, rules … }
M.roles = {
  admin = {
    from = "aggregate-to-admin",
  },
  ["cluster-admin"] = {
    { "*", "*", "*" },
    { "*", urls = "*" },
  },
  edit = {
    into = "aggregate-to-admin",
    from = "aggregate-to-edit",
  },
  ["system:aggregate-to-admin"] = {
    into = "aggregate-to-admin",
    { "create", "authorization.k8s.io", "localsubjectaccessreviews" },
    { "create delete deletecollection get list patch update watch", "rbac.authorization.k8s.io",
      "rolebindings roles" },
  },
  ["system:aggregate-to-edit"] = {
    into = "aggregate-to-edit",
    { "get list watch", "core", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy" },
    { "impersonate", "core", "serviceaccounts" },
    { "create delete deletecollection patch update", "core", "pods pods/attach pods/exec pods/portforward"
      .. " pods/proxy" },
    { "create", "core", "pods/eviction" },
    { "create delete deletecollection patch update", "core", "configmaps persistentvolumeclaims"
      .. " replicationcontrollers replicationcontrollers/scale secrets serviceaccounts services"
      .. " services/proxy" },
    { "create", "core", "serviceaccounts/token" },
    { "create delete deletecollection patch update", "core events.k8s.io", "events" },
    { "create delete deletecollection patch update", "apps", "daemonsets deployments deployments/rollback"
      .. " deployments/scale replicasets replicasets/scale statefulsets statefulsets/scale" },
    { "create delete deletecollection patch update", "autoscaling", "horizontalpodautoscalers" },
    { "create delete deletecollection patch update", "batch", "cronjobs jobs" },
    { "create delete deletecollection patch update", "extensions", "daemonsets deployments"
      .. " deployments/rollback deployments/scale ingresses networkpolicies replicasets replicasets/scale"
      .. " replicationcontrollers/scale" },
    { "create delete deletecollection patch update", "policy", "poddisruptionbudgets" },
    { "create delete deletecollection patch update", "networking.k8s.io", "ingresses networkpolicies" },
    { "create delete deletecollection get list patch update watch", "coordination.k8s.io", "leases" },
    { "create delete deletecollection patch update", "resource.k8s.io", "resourceclaims"
      .. " resourceclaimtemplates" },
  },
  ["system:aggregate-to-view"] = {
    into = "aggregate-to-view",
    { "get list watch", "core", "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status"
      .. " pods replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status" },
    { "get list watch", "core", "bindings limitranges namespaces/status pods/log pods/status"
      .. " replicationcontrollers/status resourcequotas resourcequotas/status" },
    { "get list watch", "core", "namespaces" },
    { "get list watch", "core events.k8s.io", "events" },
    { "get list watch", "discovery.k8s.io", "endpointslices" },
    { "get list watch", "apps", "controllerrevisions daemonsets daemonsets/status deployments"
      .. " deployments/scale deployments/status replicasets replicasets/scale replicasets/status"
      .. " statefulsets statefulsets/scale statefulsets/status" },
    { "get list watch", "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status" },
    { "get list watch", "batch", "cronjobs cronjobs/status jobs jobs/status" },
    { "get list watch", "extensions", "daemonsets daemonsets/status deployments deployments/scale"
      .. " deployments/status ingresses ingresses/status networkpolicies replicasets replicasets/scale"
      .. " replicasets/status replicationcontrollers/scale" },
    { "get list watch", "policy", "poddisruptionbudgets poddisruptionbudgets/status" },
    { "get list watch", "networking.k8s.io", "ingresses ingresses/status networkpolicies" },
    { "get list watch", "resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates" },
  },
  ["system:auth-delegator"] = {
    { "create", "authentication.k8s.io", "tokenreviews" },
    { "create", "authorization.k8s.io", "subjectaccessreviews" },
  },
  ["system:basic-user"] = {
    { "create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews" },
    { "create", "authentication.k8s.io", "selfsubjectreviews" },
  },
  ["system:discovery"] = {
    { "get", urls = "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version"
      .. " /version/" },
  },
  ["system:monitoring"] = {
    { "get", urls = "/flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/*"
      .. " /statusz" },
    { "get", "core", "nodes/metrics" },
  },
  ["system:public-info-viewer"] = {
    { "get", urls = "/healthz /livez /readyz /version /version/" },
  },
  ["system:service-account-issuer-discovery"] = {
    { "get", urls = "/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks"
      .. " /openid/v1/jwks/" },
  },
  view = {
    into = "aggregate-to-edit",
    from = "aggregate-to-view",
  },
}


--- name of a role → the groups that have it
M.bindings = {
  ["cluster-admin"] = { "system:masters" },
  ["system:basic-user"] = { "system:authenticated" },
  ["system:discovery"] = { "system:authenticated" },
  ["system:monitoring"] = { "system:monitoring" },
  ["system:public-info-viewer"] = { "system:authenticated", "system:unauthenticated" },
  ["system:service-account-issuer-discovery"] = { "system:serviceaccounts" },
}


return M
