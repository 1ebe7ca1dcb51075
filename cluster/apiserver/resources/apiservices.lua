--- APIServices. One without a service describes what this server serves; no request is passed on to one with a service.
---
--- Rules: kube-aggregator/pkg/apis/apiregistration/validation/validation.go, pkg/apis/apiregistration/v1/defaults.go,
--- pkg/registry/apiservice/{strategy.go,etcd/etcd.go}.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local metadata = require "cluster.apiserver.metadata"
local names = require "cluster.names"

local GROUP_MAX, VERSION_MAX, PORT = 20000, 1000, 443
local STATUSES = { "True", "False", "Unknown" }


local function defaults(object)
  local service = object.spec.service
  if service then
    service.port = service.port or PORT
  end
end


local function local_condition()
  return {
    type = "Available", status = "True", lastTransitionTime = host.timestamp(), reason = "Local",
    message = "Local APIServices are always available",
  }
end


local function prepare_create(object)
  object.status = { conditions = not object.spec.service and host.json.array { local_condition() } or nil }
end


-- A write of the status changes neither the spec nor the metadata that others own.
local function prepare_status(new, old)
  new.spec = old.spec
  metadata.keep(new.metadata, old.metadata)
end


local function check_priority(spec, name, max, errors)
  local value = spec[name]
  if value <= 0 or value > max then
    errors[#errors + 1] = field.invalid("spec." .. name, value, ("must be positive and less than %d"):format(max))
  end
end


local function check_group(spec, errors)
  local group, version = spec.group or "", spec.version or ""
  if group == "" and version ~= "v1" then
    errors[#errors + 1] = field.required("spec.group", "only v1 may have an empty group and it better be legacy kube")
  elseif group ~= "" then
    check.each(errors, "spec.group", group, names.subdomain(group))
  end
  check.each(errors, "spec.version", version, names.label_1035(version))
  check_priority(spec, "groupPriorityMinimum", GROUP_MAX, errors)
  check_priority(spec, "versionPriority", VERSION_MAX, errors)
end


local function check_local(spec, errors)
  local bundle = spec.caBundle and host.base64.decode(spec.caBundle) or ""
  if bundle ~= "" then
    errors[#errors + 1] = field.invalid("spec.caBundle", ("%d bytes"):format(#bundle),
      "local APIServices may not have a caBundle")
  end
  if spec.insecureSkipTLSVerify then
    errors[#errors + 1] = field.invalid("spec.insecureSkipTLSVerify", true,
      "local APIServices may not have insecureSkipTLSVerify")
  end
end


local function check_service(spec, errors)
  local service, path = spec.service, "spec.service"
  for _, name in ipairs { "namespace", "name" } do
    if (service[name] or "") == "" then
      errors[#errors + 1] = field.required(path .. "." .. name, "")
    end
  end
  if service.port < 1 or service.port > 65535 then
    errors[#errors + 1] = field.invalid(path .. ".port", service.port,
      "port is not valid: must be between 1 and 65535, inclusive")
  end
  if spec.insecureSkipTLSVerify and spec.caBundle then
    errors[#errors + 1] = field.invalid("spec.insecureSkipTLSVerify", true, "may not be true if caBundle is present")
  end
end


local function validate(object)
  local errors, spec, name = {}, object.spec, object.metadata.name or ""
  local wanted = (spec.version or "") .. "." .. (spec.group or "")
  if name ~= wanted and not names.path_segment(name) then
    errors[#errors + 1] = field.invalid("metadata.name", name,
      ('must be `spec.version+"."+spec.group`: %s'):format(field.quote(wanted)))
  end
  check_group(spec, errors)
  if spec.service then
    check_service(spec, errors)
  else
    check_local(spec, errors)
  end
  return errors
end


local function validate_status(new)
  local errors = {}
  for i, condition in ipairs(new.status.conditions or {}) do
    check.choice(condition.status, STATUSES, ("status.conditions[%d].status"):format(i - 1), errors)
  end
  return errors
end


local function available(object)
  for _, condition in ipairs(object.status and object.status.conditions or {}) do
    if condition.type == "Available" then
      local reason = condition.status ~= "True" and condition.reason or ""
      return reason ~= "" and ("%s (%s)"):format(condition.status, reason) or condition.status
    end
  end
  return "Unknown"
end


local function cells(obj, now)
  local service = obj.spec.service
  return {
    obj.metadata.name, service and ("%s/%s"):format(service.namespace, service.name) or "Local", available(obj),
    age.of(obj, now),
  }
end


return {
  spec_changed = false,
  unconditional_update = false,
  name = names.path_segment,
  columns = "Name Service Available Age",
  defaults = defaults,
  prepare_create = prepare_create,
  prepare_update = function(new, old)
    new.status = old.status
  end,
  prepare_status = prepare_status,
  validate = validate, validate_update = validate, validate_status = validate_status,
  fields = function(object)
    return { ["spec.service"] = object.spec.service and "true" or "" }
  end,
  cells = cells,
}
