--- Ingresses. They are stored; nothing serves them.
---
--- Rules: kubernetes/pkg/apis/networking/validation/validation.go (ValidateIngress),
--- pkg/registry/networking/ingress/strategy.go, plugin/pkg/admission/network/defaultingressclass/admission.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local classes = require "cluster.apiserver.resources.default_class"
local field = require "cluster.apiserver.field"
local ip = require "cluster.apiserver.resources.ip"
local names = require "cluster.names"
local text = require "cluster.apiserver.tables.text"
local workload = require "cluster.apiserver.resources.workload"

local NONE = {}
local HOSTS_SHOWN = 3
local CLASS = "kubernetes.io/ingress.class"
local DEFAULT_MARKS = { "ingressclass.kubernetes.io/is-default-class" }
local PATH_TYPES = { "Exact", "ImplementationSpecific", "Prefix" }
local BAD_PARTS, BAD_ENDS = { "//", "/./", "/../", "%2f", "%2F" }, { "/..", "/." }
local NOT_A_NAME = "must be a DNS name, not an IP address"


local function prepare_create(object, ctx)
  object.status = { loadBalancer = {} }
  local spec = object.spec
  if not spec.ingressClassName and not (object.metadata.annotations or NONE)[CLASS] then
    spec.ingressClassName = classes.annotated(ctx, "ingressclasses.networking.k8s.io", DEFAULT_MARKS)
  end
end


local function check_host(name, path, errors)
  local is_wild = name:find("*", 1, true)
  check.each(errors, path, name, is_wild and names.wildcard(name) or not is_wild and names.subdomain(name) or nil)
end


local function check_resource(resource, path, errors)
  if type(resource.apiGroup) == "string" then   -- null, where it was not given
    check.each(errors, path .. ".apiGroup", resource.apiGroup, names.subdomain(resource.apiGroup))
  end
  for _, name in ipairs { "kind", "name" } do
    local value, at = resource[name], path .. "." .. name
    if value == "" then
      errors[#errors + 1] = field.required(at, "")
    else
      check.each(errors, at, value, names.path_segment(value))
    end
  end
end


local function check_service(service, path, errors)
  local port, at = service.port or NONE, path .. ".service"
  if service.name == "" then
    errors[#errors + 1] = field.required(at .. ".name", "")
  else
    check.each(errors, at .. ".name", service.name, names.label(service.name))
  end
  local name, number = port.name or "", port.number or 0
  if name ~= "" and number ~= 0 then
    errors[#errors + 1] = field.invalid(path, "", "cannot set both port name & port number")
  elseif name ~= "" then
    check.each(errors, at .. ".port.name", name, check.port_name(name))
  elseif number ~= 0 then
    check.port(number, at .. ".port.number", errors)
  else
    errors[#errors + 1] = field.required(path, "port name or number is required")
  end
end


local function check_backend(backend, path, errors)
  if backend.resource and backend.service then
    errors[#errors + 1] = field.invalid(path, "", "cannot set both resource and service backends")
  elseif backend.resource then
    check_resource(backend.resource, path .. ".resource", errors)
  elseif backend.service then
    check_service(backend.service, path, errors)
  else
    errors[#errors + 1] = field.invalid(path, "", "resource or service backend is required")
  end
end


local function check_exact(path, at, errors)
  if path:sub(1, 1) ~= "/" then
    errors[#errors + 1] = field.invalid(at, path, "must be an absolute path")
  end
  for _, part in ipairs(BAD_PARTS) do
    if path:find(part, 1, true) then
      errors[#errors + 1] = field.invalid(at, path, ("must not contain '%s'"):format(part))
    end
  end
  for _, ending in ipairs(BAD_ENDS) do
    if path:sub(-#ending) == ending then
      errors[#errors + 1] = field.invalid(at, path, ("cannot end with '%s'"):format(ending))
    end
  end
end


local function check_path(item, at, errors)
  local kind, path = item.pathType, item.path or ""
  if not kind then
    errors[#errors + 1] = field.required(at .. ".pathType", "pathType must be specified")
    return
  elseif kind == "Exact" or kind == "Prefix" then
    check_exact(path, at .. ".path", errors)
  elseif kind ~= "ImplementationSpecific" then
    errors[#errors + 1] = field.not_supported(at .. ".pathType", kind, PATH_TYPES)
  elseif path ~= "" and path:sub(1, 1) ~= "/" then
    errors[#errors + 1] = field.invalid(at .. ".path", path, "must be an absolute path")
  end
  check_backend(item.backend, at .. ".backend", errors)
end


local function check_rule(rule, at, errors)
  local name = rule.host or ""
  if name ~= "" then
    if ip.family(name) then
      errors[#errors + 1] = field.invalid(at .. ".host", name, NOT_A_NAME)
    end
    check_host(name, at .. ".host", errors)
  end
  local paths = rule.http and check.list(rule.http.paths)
  if paths and #paths == 0 then
    errors[#errors + 1] = field.required(at .. ".http.paths", "")
  end
  for i, item in ipairs(paths or NONE) do
    check_path(item, ("%s.http.paths[%d]"):format(at, i - 1), errors)
  end
end


local function check_tls(tls, at, errors)
  for i, name in ipairs(tls.hosts or NONE) do
    check_host(name, ("%s.hosts[%d]"):format(at, i - 1), errors)
  end
  if (tls.secretName or "") ~= "" then
    check.each(errors, at .. ".secretName", tls.secretName, names.subdomain(tls.secretName))
  end
end


local function check_spec(spec, errors)
  if not spec.rules and not spec.defaultBackend then
    errors[#errors + 1] = check.invalid_text("spec", "null", "either `defaultBackend` or `rules` must be specified")
  end
  if spec.defaultBackend then
    check_backend(spec.defaultBackend, "spec.defaultBackend", errors)
  end
  for i, rule in ipairs(spec.rules or NONE) do
    check_rule(rule, ("spec.rules[%d]"):format(i - 1), errors)
  end
  for i, tls in ipairs(spec.tls or NONE) do
    check_tls(tls, ("spec.tls[%d]"):format(i - 1), errors)
  end
  if spec.ingressClassName then
    check.each(errors, "spec.ingressClassName", spec.ingressClassName, names.subdomain(spec.ingressClassName))
  end
end


local function validate(object)
  local errors = {}
  check_spec(object.spec, errors)
  local class = (object.metadata.annotations or NONE)[CLASS]
  if class and object.spec.ingressClassName and class ~= object.spec.ingressClassName then
    errors[#errors + 1] = field.invalid("annotations." .. CLASS, class,
      "must match `ingressClassName` when both are specified")
  end
  return errors
end


local function validate_update(new)
  local errors = {}
  check_spec(new.spec, errors)
  return errors
end


local function validate_status(new)
  local errors = {}
  for i, item in ipairs(new.status.loadBalancer.ingress or NONE) do
    local at = ("status.loadBalancer.ingress[%d]"):format(i - 1)
    if (item.ip or "") ~= "" then
      ip.check(item.ip, at .. ".ip", errors)
    end
    if (item.hostname or "") ~= "" then
      check.each(errors, at .. ".hostname", item.hostname, names.subdomain(item.hostname))
      if ip.family(item.hostname) then
        errors[#errors + 1] = field.invalid(at .. ".hostname", item.hostname, NOT_A_NAME)
      end
    end
  end
  return errors
end


local function warnings(object, old)
  if not old and (object.metadata.annotations or NONE)[CLASS] and not object.spec.ingressClassName then
    return { ('annotation "%s" is deprecated, please use \'spec.ingressClassName\' instead'):format(CLASS) }
  end
  return NONE
end


local function hosts(rules)
  local list, more = {}, false
  for _, rule in ipairs(rules or NONE) do
    more = more or #list == HOSTS_SHOWN
    if not more and (rule.host or "") ~= "" then
      list[#list + 1] = rule.host
    end
  end
  if #list == 0 then
    return "*"
  end
  local shown = table.concat(list, ",")
  return more and ("%s + %d more..."):format(shown, #rules - HOSTS_SHOWN) or shown
end


local function cells(obj, now)
  local spec = obj.spec
  return {
    obj.metadata.name, spec.ingressClassName or "<none>", hosts(spec.rules), text.addresses(obj.status),
    spec.tls and "80, 443" or "80", age.of(obj, now),
  }
end


return {
  prepare_create = prepare_create,
  prepare_update = workload.keep_status,
  prepare_status = workload.keep_spec,
  warnings = warnings,
  validate = validate, validate_update = validate_update, validate_status = validate_status,
  cells = cells,
}
