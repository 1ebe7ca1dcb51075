--- Endpoints.
---
--- Rules: kubernetes/pkg/apis/core/validation/validation.go (ValidateEndpoints),
--- pkg/registry/core/endpoint/strategy.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local ip = require "cluster.apiserver.resources.ip"
local names = require "cluster.names"
local text = require "cluster.apiserver.tables.text"

local ADDRESSES_SHOWN = 3
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


-- "10.0.0.1:80", "[::1]:80"
local function endpoint(address, port)
  if not port then
    return address.ip
  end
  return (address.ip:find(":", 1, true) and "[%s]:%d" or "%s:%d"):format(address.ip, port.port)
end


local function add_subset(list, subset)
  local ports = subset.ports or {}
  for i = 1, math.max(#ports, 1) do
    for _, address in ipairs(subset.addresses or {}) do
      list[#list + 1] = endpoint(address, ports[i])
    end
  end
end


local function cells(obj, now)
  local list = {}
  for _, subset in ipairs(obj.subsets or {}) do
    add_subset(list, subset)
  end
  local addresses = obj.subsets and obj.subsets[1] and text.cut(list, ADDRESSES_SHOWN, "") or "<none>"
  return { obj.metadata.name, addresses, age.of(obj, now) }
end


return {
  spec_changed = false, create_on_update = true,
  defaults = defaults, validate = validate, validate_update = validate,
  cells = cells,
}
