--- Written by tools/kinds: the packages of types, by their aliases. The version is v1 everywhere.
return {
  core = { name = "io.k8s.api.core.v1", group = "" },
  apps = { name = "io.k8s.api.apps.v1", group = "apps" },
  batch = { name = "io.k8s.api.batch.v1", group = "batch" },
  coordination = { name = "io.k8s.api.coordination.v1", group = "coordination.k8s.io" },
  events = { name = "io.k8s.api.events.v1", group = "events.k8s.io" },
  discovery = { name = "io.k8s.api.discovery.v1", group = "discovery.k8s.io" },
  networking = { name = "io.k8s.api.networking.v1", group = "networking.k8s.io" },
  policy = { name = "io.k8s.api.policy.v1", group = "policy" },
  rbac = { name = "io.k8s.api.rbac.v1", group = "rbac.authorization.k8s.io" },
  apiextensions = { name = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1", group = "apiextensions.k8s.io" },
  autoscaling = { name = "io.k8s.api.autoscaling.v1", group = "autoscaling" },
  authorization = { name = "io.k8s.api.authorization.v1", group = "authorization.k8s.io" },
  authentication = { name = "io.k8s.api.authentication.v1", group = "authentication.k8s.io" },
  meta = { name = "io.k8s.apimachinery.pkg.apis.meta.v1", group = "" },
}
