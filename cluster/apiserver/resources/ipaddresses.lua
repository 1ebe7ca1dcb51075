--- IPAddresses: each says who uses an address; lifecycle/addresses.lua makes those of Services.
---
--- Rules: kubernetes/pkg/apis/networking/validation/validation.go (ValidateIPAddress),
--- pkg/registry/networking/ipaddress/strategy.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local ip = require "cluster.apiserver.resources.ip"
local names = require "cluster.names"


-- The messages about a name that is no address; a prefix of one is held to the same.
local function check_name(name)
  local why = ip.complaint(name)
  return why and { why }
end


local function check_part(value, path, errors)
  if value == "" then
    errors[#errors + 1] = field.required(path, "")
  else
    check.each(errors, path, value, names.path_segment(value))
  end
end


local function validate(object)
  local errors, parent, path = {}, object.spec.parentRef, "spec.parentRef"
  if not parent then
    errors[#errors + 1] = field.required(path, "")
    return errors
  end
  if parent.group then
    check.each(errors, path .. ".group", parent.group, names.subdomain(parent.group))
  end
  check_part(parent.resource or "", path .. ".resource", errors)
  check_part(parent.name or "", path .. ".name", errors)
  if parent.namespace then
    check.each(errors, path .. ".namespace", parent.namespace, names.path_segment(parent.namespace))
  end
  return errors
end


local function validate_update(new, old)
  local errors = validate(new)
  local parent = new.spec.parentRef
  if parent and not host.json.equal(parent, old.spec.parentRef or host.json.null) then
    errors[#errors + 1] = check.invalid_text("spec.parentRef", check.go_struct {
      { "Group", parent.group or "" }, { "Resource", parent.resource }, { "Namespace", parent.namespace or "" },
      { "Name", parent.name },
    }, "field is immutable")
  end
  return errors
end


-- "services/default/kubernetes".
local function parent_text(parent)
  if not parent then
    return "<none>"
  end
  local text = (parent.group and parent.resource .. "." .. parent.group or parent.resource):lower()
  return text .. (parent.namespace and "/" .. parent.namespace or "") .. "/" .. parent.name
end


return {
  spec_changed = false,
  name = check_name,
  validate = validate, validate_update = validate_update,
  cells = function(obj, now)
    return { obj.metadata.name, parent_text(obj.spec.parentRef), age.of(obj, now) }
  end,
}
