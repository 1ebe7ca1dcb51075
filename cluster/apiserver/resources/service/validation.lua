--- The rules for services.
---
--- Rules: kubernetes/pkg/apis/core/validation/validation.go (validateService and its neighbours).
local check = require "cluster.apiserver.resources.check"
local cluster_ip_validation = require "cluster.apiserver.resources.service.cluster_ip_validation"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local ip = require "cluster.apiserver.resources.ip"
local metadata = require "cluster.apiserver.metadata"
local names = require "cluster.names"

local M = {}

local NONE = {}
local TYPES = { "ClusterIP", "ExternalName", "LoadBalancer", "NodePort" }
local PROTOCOLS = { "SCTP", "TCP", "UDP" }
local AFFINITY_MAX = 86400
local ONLY_BALANCER = "may only be used when `type` is 'LoadBalancer'"


local function headless(spec)
  return spec.clusterIP == "None"
end


--- Returns true if a service can be reached from outside.
function M.is_external(spec)
  return spec.type == "LoadBalancer" or spec.type == "NodePort"
    or spec.type == "ClusterIP" and #(spec.externalIPs or NONE) > 0
end


local function check_external_name(spec, errors)
  for _, name in ipairs { "clusterIPs", "ipFamilies", "ipFamilyPolicy" } do
    if spec[name] then
      errors[#errors + 1] = field.forbidden("spec." .. name, "may not be set for ExternalName services")
    end
  end
  local name = (spec.externalName or ""):gsub("%.$", "")
  if name == "" then
    errors[#errors + 1] = field.required("spec.externalName", "")
  else
    check.each(errors, "spec.externalName", name, names.subdomain(name))
  end
end


local function check_type(spec, errors)
  if #(spec.ports or NONE) == 0 and not headless(spec) and spec.type ~= "ExternalName" then
    errors[#errors + 1] = field.required("spec.ports", "")
  end
  if spec.type == "ExternalName" then
    check_external_name(spec, errors)
  elseif headless(spec) and (spec.type == "LoadBalancer" or spec.type == "NodePort") then
    errors[#errors + 1] = field.invalid("spec.clusterIPs[0]", spec.clusterIPs[1],
      ("may not be set to 'None' for %s services"):format(spec.type))
  end
end


local function check_port(port, several, seen, path, errors)
  local name = port.name or ""
  if name == "" then
    if several then
      errors[#errors + 1] = field.required(path .. ".name", "")
    end
  else
    check.each(errors, path .. ".name", name, names.label(name))
    if seen[name] then
      errors[#errors + 1] = field.duplicate(path .. ".name", name)
    end
    seen[name] = true
  end
  check.port(port.port, path .. ".port", errors)
  check.one_of(port.protocol, PROTOCOLS, path .. ".protocol", errors, true)
  check.port_or_name(port.targetPort, path .. ".targetPort", errors)
  if port.appProtocol then
    check.each(errors, path .. ".appProtocol", port.appProtocol, names.qualified(port.appProtocol))
  end
end


local function check_ports(spec, errors)
  local list, seen = spec.ports or NONE, {}
  for i, port in ipairs(list) do
    check_port(port, #list > 1, seen, ("spec.ports[%d]"):format(i - 1), errors)
  end
end


-- Each pair of protocol and port once; the same for ports on nodes.
local function check_duplicates(spec, errors)
  local node_ports, ports = {}, {}
  for i, port in ipairs(spec.ports or NONE) do
    local path = ("spec.ports[%d]"):format(i - 1)
    if spec.type == "ClusterIP" and port.nodePort then
      errors[#errors + 1] = field.forbidden(path .. ".nodePort", "may not be used when `type` is 'ClusterIP'")
    end
    local key = ("%s/%d"):format(port.protocol, port.nodePort or 0)
    if port.nodePort and node_ports[key] then
      errors[#errors + 1] = field.duplicate(path .. ".nodePort", port.nodePort)
    end
    node_ports[key] = true
  end
  for i, port in ipairs(spec.ports or NONE) do
    local key = ("%s/%d"):format(port.protocol, port.port)
    if ports[key] then
      local port_text = check.go_struct { { "Name", "" }, { "Protocol", port.protocol }, { "AppProtocol" },
        { "Port", port.port }, { "TargetPort", 0 }, { "NodePort", 0 } }
      local at = ("spec.ports[%d]"):format(i - 1)
      errors[#errors + 1] = { type = "FieldValueDuplicate", path = at, detail = port_text }
    end
    ports[key] = true
  end
end


local function check_affinity(spec, errors)
  check.one_of(spec.sessionAffinity, { "ClientIP", "None" }, "spec.sessionAffinity", errors, true)
  if spec.sessionAffinity ~= "ClientIP" then
    return
  end
  local seconds = spec.sessionAffinityConfig.clientIP.timeoutSeconds
  if seconds <= 0 or seconds > AFFINITY_MAX then
    errors[#errors + 1] = field.invalid("spec.sessionAffinityConfig.clientIP.timeoutSeconds", seconds,
      ("must be greater than 0 and less than %d"):format(AFFINITY_MAX))
  end
end


local function check_external_addresses(spec, errors)
  for i, address in ipairs(spec.externalIPs or NONE) do
    local path, before = ("spec.externalIPs[%d]"):format(i - 1), #errors
    ip.check(address, path, errors)
    if #errors == before then
      ip.check_special(address, path, errors)
    end
  end
end


local function check_balancer(spec, errors)
  local ranges = spec.loadBalancerSourceRanges
  local others = spec.type ~= "LoadBalancer"
  if others and ranges then
    errors[#errors + 1] = field.forbidden("spec.LoadBalancerSourceRanges", ONLY_BALANCER)
  end
  for i, range in ipairs(ranges or NONE) do
    ip.check_range(range:match("^%s*(.-)%s*$"), ("spec.LoadBalancerSourceRanges[%d]"):format(i - 1), errors)
  end
  if others and spec.allocateLoadBalancerNodePorts ~= nil then
    errors[#errors + 1] = field.forbidden("spec.allocateLoadBalancerNodePorts", ONLY_BALANCER)
  end
  if others and spec.loadBalancerClass then
    errors[#errors + 1] = field.forbidden("spec.loadBalancerClass", ONLY_BALANCER)
  end
end


local function check_traffic(spec, errors)
  local external, path = spec.externalTrafficPolicy, "spec.externalTrafficPolicy"
  if not M.is_external(spec) then
    if external then
      errors[#errors + 1] = field.invalid(path, external, "may only be set for externally-accessible services")
    end
  else
    check.one_of(external, { "Cluster", "Local" }, path, errors, true)
  end
  check.one_of(spec.internalTrafficPolicy, { "Cluster", "Local" }, "spec.internalTrafficPolicy", errors)
  if spec.trafficDistribution then
    check.choice(spec.trafficDistribution, { "PreferClose", "PreferSameZone", "PreferSameNode" },
      "spec.trafficDistribution", errors)
  end
end


--- @return table field errors
function M.validate(object)
  local errors, spec = {}, object.spec
  check_type(spec, errors)
  check_ports(spec, errors)
  metadata.check_labels(spec.selector, "spec.selector", errors)
  check_affinity(spec, errors)
  check.append(errors, cluster_ip_validation.check(spec))
  check_external_addresses(spec, errors)
  check.one_of(spec.type, TYPES, "spec.type", errors, true)
  check_duplicates(spec, errors)
  check_balancer(spec, errors)
  check_traffic(spec, errors)
  return errors
end


-- Once an address is given it stays, as long as there are addresses at all.
local function check_same_address(new, old, errors)
  if new.type == "ExternalName" or old.type == "ExternalName" or headless(new) and headless(old) then
    return
  end
  local before, after = old.clusterIPs or NONE, new.clusterIPs or NONE
  if #before > 0 and #after == 0 then
    errors[#errors + 1] = field.invalid("spec.clusterIPs[0]", host.json.null, "primary clusterIP can not be unset")
    return
  end
  for i = 1, math.min(#before, #after) do
    if before[i] ~= after[i] then
      errors[#errors + 1] = field.invalid(("spec.clusterIPs[%d]"):format(i - 1), after, "may not change once set")
    end
  end
end


--- @return table field errors
function M.validate_update(new, old)
  local errors = {}
  check_same_address(new.spec, old.spec, errors)
  local before, after = old.spec.ipFamilies or NONE, new.spec.ipFamilies or NONE
  if new.spec.type ~= "ExternalName" and old.spec.type ~= "ExternalName"
    and not (headless(new.spec) and headless(old.spec)) and before[1] and after[1] and before[1] ~= after[1] then
    errors[#errors + 1] = field.invalid("spec.ipFamilies[0]", after, "may not change once set")
  end
  return check.append(errors, M.validate(new))
end


return M
