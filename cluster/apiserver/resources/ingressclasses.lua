--- Classes of Ingresses. They are stored; nothing serves Ingresses.
---
--- Rules: kubernetes/pkg/apis/networking/validation/validation.go (ValidateIngressClass),
--- pkg/apis/networking/v1/defaults.go, pkg/registry/networking/ingressclass/strategy.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local names = require "cluster.names"

local CONTROLLER_MAX = 250
local SCOPES = { "Cluster", "Namespace" }
local IS_DEFAULT = "ingressclass.kubernetes.io/is-default-class"


-- A scope that is not given has come to be null by now: its type always writes it.
local function defaults(object)
  local parameters = object.spec.parameters
  if parameters and parameters.scope == host.json.null then
    parameters.scope = "Cluster"
  end
end


local function check_reference(value, path, errors)
  if value == "" then
    errors[#errors + 1] = field.required(path, "")
  else
    check.each(errors, path, value, names.path_segment(value))
  end
end


local function check_scope(parameters, path, errors)
  local namespace = parameters.namespace
  check.one_of(parameters.scope, SCOPES, path .. ".scope", errors)
  path = path .. ".namespace"
  if parameters.scope == "Cluster" and namespace then
    errors[#errors + 1] = field.forbidden(path, "`parameters.scope` is set to 'Cluster'")
  elseif parameters.scope == "Namespace" and not namespace then
    errors[#errors + 1] = field.required(path, "`parameters.scope` is set to 'Namespace'")
  elseif parameters.scope == "Namespace" then
    check.each(errors, path, namespace, names.label(namespace))
  end
end


local function check_parameters(parameters, path, errors)
  if parameters.apiGroup then
    check.each(errors, path .. ".apiGroup", parameters.apiGroup, names.subdomain(parameters.apiGroup))
  end
  check_reference(parameters.kind, path .. ".kind", errors)
  check_reference(parameters.name, path .. ".name", errors)
  check_scope(parameters, path, errors)
end


local function validate(object)
  local errors, spec = {}, object.spec
  local controller = spec.controller or ""
  if #controller > CONTROLLER_MAX then
    errors[#errors + 1] = field.too_long("spec.controller", "", CONTROLLER_MAX)
  end
  check.domain_prefixed_path(controller, "spec.controller", errors)
  if spec.parameters then
    check_parameters(spec.parameters, "spec.parameters", errors)
  end
  return errors
end


local function validate_update(new, old)
  local errors = {}
  check.immutable_value(new.spec.controller or "", old.spec.controller or "", "spec.controller", errors)
  return check.append(errors, validate(new))
end


-- "Config.example.com/name" of what the class refers to.
local function parameters_text(parameters)
  if not parameters then
    return "<none>"
  end
  return parameters.kind .. (parameters.apiGroup and "." .. parameters.apiGroup or "") .. "/" .. parameters.name
end


local function cells(obj, now)
  local annotations = obj.metadata.annotations
  local mark = annotations and annotations[IS_DEFAULT] == "true" and " (default)" or ""
  local name, parameters = obj.metadata.name .. mark, parameters_text(obj.spec.parameters)
  return { name, obj.spec.controller or "", parameters, age.of(obj, now) }
end


return { defaults = defaults, validate = validate, validate_update = validate_update, cells = cells }
