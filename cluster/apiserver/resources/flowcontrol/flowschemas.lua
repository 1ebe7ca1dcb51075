--- FlowSchemas. They are stored; requests are not queued here.
---
--- Rules: kubernetes/pkg/apis/flowcontrol/validation/validation.go, pkg/apis/flowcontrol/v1/defaults.go,
--- pkg/registry/flowcontrol/flowschema/strategy.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local fixed = require "cluster.apiserver.resources.flowcontrol.fixed"
local host = require "cluster.host"
local names = require "cluster.names"
local status_rules = require "cluster.apiserver.resources.flowcontrol.status"

local NONE = {}
local PRECEDENCE_MAX, PRECEDENCE_DEFAULT = 10000, 1000
local VERBS = { "create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch" }
local KNOWN_VERBS = check.set(VERBS)
local SUBJECTS = { Group = "group", ServiceAccount = "serviceAccount", User = "user" }
local MEMBER = "each member of this list must be '*' or a DNS-1123 label; "


local function defaults(object)
  local spec = object.spec
  if spec.matchingPrecedence == 0 then
    spec.matchingPrecedence = PRECEDENCE_DEFAULT
  end
end


local function has_star(list)
  for _, item in ipairs(list) do
    if item == "*" then
      return true
    end
  end
  return false
end


-- A list with something in it, in which "*" stands alone. `what` and `others` are for messages.
-- @return boolean whether its members are to be looked at
local function check_list(list, path, missing, others, errors)
  list = check.list(list)
  if #list == 0 then
    errors[#errors + 1] = field.required(path, missing)
  elseif not has_star(list) then
    return true
  elseif #list > 1 then
    errors[#errors + 1] = field.invalid(path, list, ("if '*' is present, must not specify other %s"):format(others))
  end
  return false
end


local function check_verbs(verbs, path, errors)
  if not check_list(verbs, path, "verbs must contain at least one value", "verbs", errors) then
    return
  end
  for _, verb in ipairs(verbs) do
    if not KNOWN_VERBS[verb] then
      errors[#errors + 1] = field.not_supported(path, verbs, VERBS)
      return
    end
  end
end


-- @return string|nil what is wrong with a path, which may end in "/*"
local function path_problem(path)
  local _, stars = path:gsub("%*", "")
  if path == "" then
    return "must not be empty"
  elseif path == "/" then
    return nil
  elseif path:sub(1, 1) ~= "/" then
    return "must start with slash"
  elseif path:find(" ", 1, true) then
    return "must not contain white-space"
  elseif path:find("//", 1, true) then
    return "must not contain double slash"
  elseif stars > 1 or stars == 1 and path:sub(-2) ~= "/*" then
    return "wildcard can only do suffix matching"
  end
end


local function check_paths_rule(rule, path, errors)
  check_verbs(rule.verbs, path .. ".verbs", errors)
  local at = path .. ".nonResourceURLs"
  if check_list(rule.nonResourceURLs, at, "nonResourceURLs must contain at least one value", "non-resource URLs",
    errors) then
    for i, url in ipairs(rule.nonResourceURLs) do
      local why = path_problem(url)
      if why then
        errors[#errors + 1] = field.invalid(("%s[%d]"):format(at, i - 1), url, why)
      end
    end
  end
end


local function check_resource_rule(rule, path, errors)
  check_verbs(rule.verbs, path .. ".verbs", errors)
  check_list(rule.apiGroups, path .. ".apiGroups", "resource rules must supply at least one api group",
    "api groups", errors)
  check_list(rule.resources, path .. ".resources", "resource rules must supply at least one resource", "resources",
    errors)
  local namespaces, at = check.list(rule.namespaces), path .. ".namespaces"
  if #namespaces == 0 and rule.clusterScope then
    return
  elseif check_list(namespaces, at,
    "resource rules that are not cluster scoped must supply at least one namespace", "namespaces", errors) then
    for i, name in ipairs(namespaces) do
      for _, message in ipairs(names.label(name) or NONE) do
        errors[#errors + 1] = field.invalid(("%s[%d]"):format(at, i - 1), name, MEMBER .. message)
      end
    end
  end
end


local function check_account(account, path, errors)
  if account.name == "" then
    errors[#errors + 1] = field.required(path .. ".name", "")
  elseif account.name ~= "*" then
    check.each(errors, path .. ".name", account.name, names.subdomain(account.name))
  end
  if account.namespace == "" then
    errors[#errors + 1] = field.required(path .. ".namespace", "must specify namespace for service account")
  else
    check.each(errors, path .. ".namespace", account.namespace, names.label(account.namespace))
  end
end


local function check_subject(subject, path, errors)
  local name = SUBJECTS[subject.kind]
  if not name then
    errors[#errors + 1] = field.not_supported(path .. ".kind", subject.kind, { "Group", "ServiceAccount", "User" })
    return
  end
  local value, at = subject[name], path .. "." .. name
  if not value then
    errors[#errors + 1] = field.required(at, ("%s is required when subject kind is '%s'"):format(name, subject.kind))
  elseif name == "serviceAccount" then
    check_account(value, at, errors)
  elseif value.name == "" then
    errors[#errors + 1] = field.required(at .. ".name", "")
  end
  for _, kind in ipairs { "ServiceAccount", "User", "Group" } do
    local other = SUBJECTS[kind]
    if other ~= name and subject[other] then
      errors[#errors + 1] = field.forbidden(path .. "." .. other,
        ("%s is forbidden when subject kind is not '%s'"):format(other, kind))
    end
  end
end


local function check_rule(rule, path, errors)
  local subjects = check.list(rule.subjects)
  if #subjects == 0 then
    errors[#errors + 1] = field.required(path .. ".subjects", "subjects must contain at least one value")
  end
  for i, subject in ipairs(subjects) do
    check_subject(subject, ("%s.subjects[%d]"):format(path, i - 1), errors)
  end
  if not rule.resourceRules and not rule.nonResourceRules then
    errors[#errors + 1] = field.required(path,
      "at least one of resourceRules and nonResourceRules has to be non-empty")
  end
  for i, inner in ipairs(rule.resourceRules or NONE) do
    check_resource_rule(inner, ("%s.resourceRules[%d]"):format(path, i - 1), errors)
  end
  for i, inner in ipairs(rule.nonResourceRules or NONE) do
    check_paths_rule(inner, ("%s.nonResourceRules[%d]"):format(path, i - 1), errors)
  end
end


local function check_precedence(value, name, errors)
  local why = value <= 0 and "must be a positive value"
    or value > PRECEDENCE_MAX and ("must not be greater than %d"):format(PRECEDENCE_MAX)
    or value == 1 and name ~= "exempt" and "only the schema named 'exempt' may have matchingPrecedence 1"
  if why then
    errors[#errors + 1] = field.invalid("spec.matchingPrecedence", value, why)
  end
end


local function check_references(spec, errors)
  local method, level = spec.distinguisherMethod, spec.priorityLevelConfiguration.name
  if method and method.type ~= "ByNamespace" and method.type ~= "ByUser" then
    errors[#errors + 1] = check.unsupported_text("spec.distinguisherMethod.type",
      check.go_struct { { "Type", method.type } }, { "ByNamespace", "ByUser" })
  end
  if level == "" then
    errors[#errors + 1] = field.required("spec.priorityLevelConfiguration.name", "must reference a priority level")
  else
    check.each(errors, "spec.priorityLevelConfiguration.name", level, names.subdomain(level))
  end
end


local function validate(object)
  local errors, spec, name = {}, object.spec, object.metadata.name
  check_precedence(spec.matchingPrecedence, name, errors)
  check_references(spec, errors)
  for i, rule in ipairs(spec.rules or NONE) do
    check_rule(rule, ("spec.rules[%d]"):format(i - 1), errors)
  end
  if fixed.mandatory[name] and not host.json.equal(fixed.schemas[name], spec) then
    errors[#errors + 1] = field.invalid("spec", nil, ("spec of '%s' must equal the fixed value"):format(name))
  end
  return errors
end


local function cells(obj, now)
  local spec, dangling = obj.spec, "?"
  for _, condition in ipairs(obj.status and obj.status.conditions or NONE) do
    dangling = condition.type == "Dangling" and condition.status or dangling
  end
  return {
    obj.metadata.name, spec.priorityLevelConfiguration.name, spec.matchingPrecedence,
    spec.distinguisherMethod and spec.distinguisherMethod.type or "<none>", age.of(obj, now), dangling,
  }
end


return {
  defaults = defaults,
  prepare_create = status_rules.clear,
  prepare_update = status_rules.keep,
  prepare_status = status_rules.prepare,
  validate = validate, validate_update = validate, validate_status = status_rules.validate,
  cells = cells,
}
