-- A Site is a Deployment and, unless it is internal, a Service. docs/changing.md changes this script while it runs.
local moonloop = require "moonloop"

local Site = moonloop.kind("example.com/v1", "Site")
local Deployment = moonloop.kind("apps/v1", "Deployment")
local Service = moonloop.kind("v1", "Service")

return moonloop.controller {
  name = "site",
  reconciles = Site,
  owns = { Deployment, Service },
  reconcile = function(site)
    local name = site.metadata.name
    local labels = { ["example.com/site"] = name }
    local children = {
      {
        apiVersion = "apps/v1", kind = "Deployment",
        metadata = { name = name, labels = labels },
        spec = {
          replicas = site.spec.replicas,
          selector = { matchLabels = labels },
          template = {
            metadata = { labels = labels },
            spec = { containers = { { name = "web", image = site.spec.image } } },
          },
        },
      },
    }
    if not site.spec.internal then
      children[2] = {
        apiVersion = "v1", kind = "Service",
        metadata = { name = name, labels = labels },
        spec = { selector = labels, ports = { { port = 80, targetPort = 8080 } } },
      }
    end
    return {
      children = children,
      status = { url = ("http://%s.%s"):format(name, site.metadata.namespace) },
    }
  end,
}
