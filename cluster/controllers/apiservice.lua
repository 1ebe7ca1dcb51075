--- APIServices: one for each version of a group that is served; those with a service are not available.
---
--- Rules: kube-aggregator/pkg/controllers/autoregister, kubernetes/cmd/kube-apiserver/app/aggregator.go,
--- pkg/controlplane/controller/crdregistration.
local host = require "cluster.host"

local M = {}

local ID, PATH = "apiservices.apiregistration.k8s.io", "/apis/apiregistration.k8s.io/v1/apiservices"
local MANAGED = "kube-aggregator.kubernetes.io/automanaged"
local AGENT = { user_agent = "kube-apiserver" }
local NOTHING_PROXIES = "nothing here passes requests on to other API servers"

-- Built-in group → its priority, and that of its versions where it is not VERSION.
local GROUPS = {
  [""] = 18000, apps = 17800, ["events.k8s.io"] = 17750, ["authentication.k8s.io"] = 17700,
  ["authorization.k8s.io"] = 17600, autoscaling = 17500, batch = 17400, ["certificates.k8s.io"] = 17300,
  ["networking.k8s.io"] = 17200, policy = 17100, ["rbac.authorization.k8s.io"] = 17000, ["storage.k8s.io"] = 16800,
  ["apiextensions.k8s.io"] = 16700, ["scheduling.k8s.io"] = 16600, ["coordination.k8s.io"] = 16500,
  ["node.k8s.io"] = 16300, ["discovery.k8s.io"] = 16200, ["flowcontrol.apiserver.k8s.io"] = 16100,
  ["resource.k8s.io"] = 16200,
}
local VERSION = 15
local VERSIONS = {
  ["/v1"] = 1, ["autoscaling/v2"] = 30, ["resource.k8s.io/v1"] = 21, ["flowcontrol.apiserver.k8s.io/v1"] = 21,
}
local CUSTOM_GROUP, CUSTOM_VERSION = 1000, 100


-- The APIServices that should exist: name → object. The aggregator's own group has none.
local function wanted(server)
  local all = {}
  for _, res in ipairs(server.registry:all()) do
    local name = res.version .. "." .. res.group
    if res.group ~= "apiregistration.k8s.io" and not all[name] then
      all[name] = {
        metadata = { name = name, labels = { [MANAGED] = res.builtin and "onstart" or "true" } },
        spec = {
          group = res.group ~= "" and res.group or nil, version = res.version,
          groupPriorityMinimum = GROUPS[res.group] or CUSTOM_GROUP,
          versionPriority = res.builtin and (VERSIONS[res.group .. "/" .. res.version] or VERSION) or CUSTOM_VERSION,
        },
      }
    end
  end
  return all
end


-- Stores an object as it is, without the way through a request: a test begins with a new server each time.
local function add(server, object)
  local res, now = server.registry:by_id(ID), host.timestamp()
  object.apiVersion, object.kind = res.api_version, res.kind
  object.metadata.uid, object.metadata.creationTimestamp = host.uuid(), now
  object.status = { conditions = host.json.array { {
    type = "Available", status = "True", lastTransitionTime = now, reason = "Local",
    message = "Local APIServices are always available",
  } } }
  server.store:create(res, object)
end


-- Says of an APIService with a service that it is not available.
local function set_unavailable(server, entry)
  local res = server.registry:by_id(ID)
  local object = server.store.object(res, entry)
  for _, condition in ipairs(object.status and object.status.conditions or {}) do
    if condition.type == "Available" then
      return
    end
  end
  object.status = { conditions = host.json.array { {
    type = "Available", status = "False", lastTransitionTime = host.timestamp(), reason = "NotProxied",
    message = NOTHING_PROXIES,
  } } }
  server:call("PUT", PATH .. "/" .. entry.name .. "/status", object, AGENT)
end


local function sync(server)
  local all, gone = wanted(server), {}
  for name, object in pairs(all) do
    if not server.store:get(ID, "", name) then
      add(server, object)
    end
  end
  local services = {}
  server.store:collection(ID):each(nil, nil, function(entry)
    if entry.labels and entry.labels[MANAGED] == "true" and not all[entry.name] then
      gone[#gone + 1] = entry.name
    elseif entry.fields["spec.service"] ~= "" then
      services[#services + 1] = entry
    end
  end)
  for _, name in ipairs(gone) do
    server:call("DELETE", PATH .. "/" .. name, nil, AGENT)
  end
  for _, entry in ipairs(services) do
    set_unavailable(server, entry)
  end
end


--- Starts the controller: it looks at everything soon, and when a kind or an APIService comes or goes.
function M.start(server)
  local waiting, generation = false, nil
  local function later()
    if not waiting then
      waiting = true
      host.defer(function()
        waiting = false
        generation = server.registry.generation
        sync(server)
      end)
    end
  end
  server.store:subscribe(function(event)
    if event.id == ID or event.id == "customresourcedefinitions.apiextensions.k8s.io"
      and server.registry.generation ~= generation then
      later()
    end
  end)
  later()
end


return M
