--- Endpoints.
---
--- Rules: kubernetes/pkg/apis/core/validation/validation.go (ValidateEndpoints),
--- pkg/registry/core/endpoint/strategy.go.
local check = require "cluster.apiserver.resources.check"
local describe = require "cluster.apiserver.resources.describe"
local field = require "cluster.apiserver.field"
local ip = require "cluster.apiserver.resources.ip"
local names = require "cluster.apiserver.names"

local PROTOCOLS = { "SCTP", "TCP", "UDP" }


local function defaults(object)
  for _, subset in ipairs(object.subsets or {}) do
    for _, port in ipairs(subset.ports or {}) do
      port.protocol = port.protocol or "TCP"
    end
  end
end


local function check_address(address, path, errors)
  ip.check(address.ip, path .. ".ip", errors)
  if address.hostname then
    check.each(errors, path .. ".hostname", address.hostname, names.label(address.hostname))
  end
  if address.nodeName then
    check.each(errors, path .. ".nodeName", address.nodeName, names.subdomain(address.nodeName))
  end
  ip.check_special(address.ip, path .. ".ip", errors)
end


local function check_port(port, several, path, errors)
  if several and not port.name then
    errors[#errors + 1] = field.required(path .. ".name", "")
  elseif port.name then
    check.each(errors, path .. ".name", port.name, names.label(port.name))
  end
  check.port(port.port, path .. ".port", errors)
  check.one_of(port.protocol, PROTOCOLS, path .. ".protocol", errors, true)
end


local function check_subset(subset, path, errors)
  local ready, others, ports = subset.addresses or {}, subset.notReadyAddresses or {}, subset.ports or {}
  if #ready == 0 and #others == 0 then
    errors[#errors + 1] = field.required(path, "must specify `addresses` or `notReadyAddresses`")
  end
  for i, address in ipairs(ready) do
    check_address(address, ("%s.addresses[%d]"):format(path, i - 1), errors)
  end
  for i, address in ipairs(others) do
    check_address(address, ("%s.notReadyAddresses[%d]"):format(path, i - 1), errors)
  end
  for i, port in ipairs(ports) do
    check_port(port, #ports > 1, ("%s.ports[%d]"):format(path, i - 1), errors)
  end
end


local function validate(object)
  local errors = {}
  for i, subset in ipairs(object.subsets or {}) do
    check_subset(subset, ("subsets[%d]"):format(i - 1), errors)
  end
  return errors
end


return describe.kind {
  plural = "endpoints", kind = "Endpoints", singular = "endpoints", short = { "ep" },
  deprecated = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
  strategy = {
    spec_changed = false, create_on_update = true,
    defaults = defaults, validate = validate, validate_update = validate,
  },
}
