--- Services.
---
--- Rules: kubernetes/pkg/apis/core/v1/defaults.go (SetDefaults_Service), pkg/registry/core/service/strategy.go,
--- pkg/registry/core/service/storage.
local cells = require "cluster.apiserver.tables.cells.service"
local cluster_ip = require "cluster.apiserver.resources.service.cluster_ip"
local cluster_ip_validation = require "cluster.apiserver.resources.service.cluster_ip_validation"
local host = require "cluster.host"
local location = require "cluster.apiserver.proxy.location"
local names = require "cluster.names"
local node_ports = require "cluster.apiserver.resources.service.node_ports"
local proxy = require "cluster.apiserver.proxy"
local status = require "cluster.apiserver.status"
local validation = require "cluster.apiserver.resources.service.validation"
local warnings = require "cluster.apiserver.resources.service.warnings"

local AFFINITY_SECONDS = 10800
local INTERNAL = { NodePort = true, LoadBalancer = true, ClusterIP = true }


local function default_affinity(spec)
  spec.sessionAffinity = spec.sessionAffinity or "None"
  if spec.sessionAffinity == "None" then
    spec.sessionAffinityConfig = nil
  elseif spec.sessionAffinity == "ClientIP" then
    local config = spec.sessionAffinityConfig
    if not (config and config.clientIP and config.clientIP.timeoutSeconds) then
      spec.sessionAffinityConfig = { clientIP = { timeoutSeconds = AFFINITY_SECONDS } }
    end
  end
end


local function default_ports(list)
  for _, port in ipairs(list or {}) do
    port.protocol = port.protocol or "TCP"
    local target = port.targetPort
    if target == nil or target == 0 or target == "" or target == host.json.null then
      port.targetPort = port.port
    end
  end
end


local function defaults(object)
  local spec = object.spec
  default_affinity(spec)
  spec.type = spec.type or "ClusterIP"
  default_ports(spec.ports)
  if validation.is_external(spec) then
    spec.externalTrafficPolicy = spec.externalTrafficPolicy or "Cluster"
  end
  if INTERNAL[spec.type] then
    spec.internalTrafficPolicy = spec.internalTrafficPolicy or "Cluster"
  end
  if spec.type == "LoadBalancer" and spec.allocateLoadBalancerNodePorts == nil then
    spec.allocateLoadBalancerNodePorts = true
  end
end


local function refuse(object, errors)
  return nil, status.invalid("", "Service", object.metadata.name or "", errors)
end


-- Families, an address and ports, in this order. @return true, or nil and a status
local function allocate(object, ctx, old)
  local spec, before = object.spec, old and old.spec
  local uid, dry = (old or object).metadata.uid, ctx.request.query.dryRun ~= nil
  local errors = cluster_ip_validation.check(spec)
  if #errors > 0 then
    return refuse(object, errors)
  end
  errors = cluster_ip.set_families(spec, before)
  if not errors and not (before and before.type ~= "ExternalName") then
    errors = cluster_ip.allocate(spec, ctx.server, uid, dry)
  end
  errors = errors or node_ports.allocate(spec, ctx.server, uid, { old = before, dry = dry })
  if errors then
    return refuse(object, errors)
  end
  return true
end


local function prepare_create(object, ctx)
  cluster_ip.normalize(object.spec)
  local done, failure = allocate(object, ctx)
  object.status = { loadBalancer = {} }
  return done, failure
end


-- Drops fields that were made for the type before, unless the same update changed them.
local function drop_of_type(new, old)
  if old.type ~= "ExternalName" and new.type == "ExternalName" then
    for _, name in ipairs { "clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy" } do
      if host.json.equal(new[name] or host.json.null, old[name] or host.json.null) then
        new[name] = nil
      end
    end
  end
  node_ports.drop(new, old)
  if old.type == "LoadBalancer" and new.type ~= "LoadBalancer" then
    for _, name in ipairs { "allocateLoadBalancerNodePorts", "loadBalancerClass", "healthCheckNodePort" } do
      if new[name] == old[name] then
        new[name] = nil
      end
    end
  end
  if validation.is_external(old) and not validation.is_external(new)
    and new.externalTrafficPolicy == old.externalTrafficPolicy then
    new.externalTrafficPolicy = nil
  end
end


-- Fields that an update leaves out keep what was allocated.
local function keep_allocated(new, old)
  if old.type ~= "ExternalName" and new.type ~= "ExternalName" then
    new.clusterIP = new.clusterIP or old.clusterIP
    new.clusterIPs = new.clusterIPs or old.clusterIPs
  end
  node_ports.keep(new, old)
end


local function prepare_update(new, old, ctx)
  keep_allocated(new.spec, old.spec)
  cluster_ip.normalize(new.spec, old.spec)
  drop_of_type(new.spec, old.spec)
  local done, failure = allocate(new, ctx, old)
  new.status = old.status
  if new.spec.type ~= "LoadBalancer" then
    new.status.loadBalancer = {}
  end
  return done, failure
end


local function prepare_status(new, old)
  new.spec = old.spec
end


return {
  name = names.name_is_label,
  spec_changed = false,
  create_on_update = true,
  defaults = defaults,
  prepare_create = prepare_create,
  prepare_update = prepare_update,
  prepare_status = prepare_status,
  warnings = warnings.of,
  validate = validation.validate,
  validate_update = validation.validate_update,
  field_names = { ["spec.clusterIP"] = true, ["spec.type"] = true },
  fields = function(object)
    return { ["spec.clusterIP"] = object.spec.clusterIP or "", ["spec.type"] = object.spec.type or "" }
  end,
  subresources = { proxy = proxy.part("ServiceProxyOptions", location.of_service) },
  cells = cells,
}
