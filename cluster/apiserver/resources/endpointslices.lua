--- Endpoint slices.
---
--- Rules: kubernetes/pkg/apis/discovery/validation/validation.go, pkg/apis/discovery/v1/defaults.go,
--- pkg/registry/discovery/endpointslice/strategy.go.
local cells = require "cluster.apiserver.tables.cells.endpointslice"
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local ip = require "cluster.apiserver.resources.ip"
local metadata = require "cluster.apiserver.metadata"
local names = require "cluster.names"

local ENDPOINTS_MAX, ADDRESSES_MAX, PORTS_MAX = 1000, 100, 20000
local TYPES, PROTOCOLS = { "FQDN", "IPv4", "IPv6" }, { "SCTP", "TCP", "UDP" }


local function defaults(object)
  for _, port in ipairs(check.list(object.ports)) do
    port.name = port.name or ""
    port.protocol = port.protocol or "TCP"
  end
end


local function prepare(object)
  check.empty_to_null(object, "endpoints")
  check.empty_to_null(object, "ports")
end


local function check_address(address, kind, path, list_path, errors)
  if kind == "FQDN" then
    check.each(errors, path, address, names.subdomain(address))
    return
  end
  local family = ip.family(address)
  if not family then
    ip.check(address, path, errors)
    return
  elseif family ~= kind then
    errors[#errors + 1] = field.invalid(list_path, address, ("must be an %s address"):format(kind))
  end
  ip.check_special(address, path, errors)
end


local function check_endpoint(endpoint, kind, path, errors)
  local list, list_path = check.list(endpoint.addresses), path .. ".addresses"
  if #list == 0 then
    errors[#errors + 1] = field.required(list_path, "must contain at least 1 address")
  elseif #list > ADDRESSES_MAX then
    errors[#errors + 1] = field.too_many(list_path, #list, ADDRESSES_MAX)
  end
  if kind == "IPv4" or kind == "IPv6" or kind == "FQDN" then
    for i, address in ipairs(list) do
      check_address(address, kind, ("%s[%d]"):format(list_path, i - 1), list_path, errors)
    end
  end
  if endpoint.nodeName then
    check.each(errors, path .. ".nodeName", endpoint.nodeName, names.subdomain(endpoint.nodeName))
  end
  metadata.check_labels(endpoint.deprecatedTopology, path .. ".deprecatedTopology", errors)
  if endpoint.hostname then
    check.each(errors, path .. ".hostname", endpoint.hostname, names.label(endpoint.hostname))
  end
end


local function check_ports(ports, errors)
  if #ports > PORTS_MAX then
    errors[#errors + 1] = field.too_many("ports", #ports, PORTS_MAX)
    return
  end
  local seen = {}
  for i, port in ipairs(ports) do
    local path = ("ports[%d]"):format(i - 1)
    if port.name ~= "" then
      check.each(errors, path .. ".name", port.name, names.label(port.name))
    end
    if seen[port.name] then
      errors[#errors + 1] = field.duplicate(path .. ".name", port.name)
    end
    seen[port.name] = true
    check.one_of(port.protocol, PROTOCOLS, path .. ".protocol", errors)
    if port.appProtocol then
      check.each(errors, path .. ".appProtocol", port.appProtocol, names.qualified(port.appProtocol))
    end
  end
end


local function validate(object)
  local errors, endpoints = {}, check.list(object.endpoints)
  check.one_of(object.addressType, TYPES, "addressType", errors, true)
  check_ports(check.list(object.ports), errors)
  if #endpoints > ENDPOINTS_MAX then
    errors[#errors + 1] = field.too_many("endpoints", #endpoints, ENDPOINTS_MAX)
    return errors
  end
  for i, endpoint in ipairs(endpoints) do
    check_endpoint(endpoint, object.addressType, ("endpoints[%d]"):format(i - 1), errors)
  end
  return errors
end


local function validate_update(new, old)
  local errors = validate(new)
  check.immutable_value(new.addressType, old.addressType, "addressType", errors)
  return errors
end


return {
  defaults = defaults, prepare_create = prepare, prepare_update = prepare,
  validate = validate, validate_update = validate_update,
  cells = cells,
}
