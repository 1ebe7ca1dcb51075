--- Roles and their bindings. auth/escalation.lua checks whether a user may grant the rights of a role.
---
--- Rules: kubernetes/pkg/apis/rbac/validation/validation.go, pkg/apis/rbac/v1/defaults.go,
--- pkg/registry/rbac/*/strategy.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local escalation = require "cluster.apiserver.auth.escalation"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local names = require "cluster.names"
local selectors = require "cluster.apiserver.resources.selectors"

local GROUP = "rbac.authorization.k8s.io"
local OF_GROUP = { User = true, Group = true }
local NONE = {}


local function check_rule(rule, namespaced, path, errors)
  if #check.list(rule.verbs) == 0 then
    errors[#errors + 1] = field.required(path .. ".verbs", "verbs must contain at least one value")
  end
  local urls = rule.nonResourceURLs
  if not urls then
    if not rule.apiGroups then
      errors[#errors + 1] = field.required(path .. ".apiGroups", "resource rules must supply at least one api group")
    end
    if not rule.resources then
      errors[#errors + 1] = field.required(path .. ".resources", "resource rules must supply at least one resource")
    end
    return
  end
  path = path .. ".nonResourceURLs"
  if namespaced then
    errors[#errors + 1] = field.invalid(path, urls, "namespaced rules cannot apply to non-resource URLs")
  end
  if rule.apiGroups or rule.resources or rule.resourceNames then
    errors[#errors + 1] = field.invalid(path, urls,
      "rules cannot apply to both regular resources and non-resource URLs")
  end
end


local function check_aggregation(aggregation, errors)
  local path = "aggregationRule.clusterRoleSelectors"
  local list = aggregation.clusterRoleSelectors or NONE
  if #list == 0 then
    errors[#errors + 1] = field.required(path,
      "at least one clusterRoleSelector required if aggregationRule is non-nil")
  end
  for i, selector in ipairs(list) do
    selectors.validate(selector, ("%s[%d]"):format(path, i - 1), errors)
  end
end


local function role_validation(namespaced)
  return function(object)
    local errors = {}
    for i, rule in ipairs(check.list(object.rules)) do
      check_rule(rule, namespaced, ("rules[%d]"):format(i - 1), errors)
    end
    if object.aggregationRule then
      check_aggregation(object.aggregationRule, errors)
    end
    return errors
  end
end


local function check_account(subject, namespaced, path, errors)
  if subject.name ~= "" then
    check.each(errors, path .. ".name", subject.name, names.subdomain(subject.name))
  end
  if subject.apiGroup then
    errors[#errors + 1] = field.not_supported(path .. ".apiGroup", subject.apiGroup, { "" })
  end
  if not namespaced and not subject.namespace then
    errors[#errors + 1] = field.required(path .. ".namespace", "")
  end
end


local function check_subject(subject, namespaced, path, errors)
  if subject.name == "" then
    errors[#errors + 1] = field.required(path .. ".name", "")
  end
  if subject.kind == "ServiceAccount" then
    check_account(subject, namespaced, path, errors)
  elseif not OF_GROUP[subject.kind] then
    errors[#errors + 1] = field.not_supported(path .. ".kind", subject.kind, { "ServiceAccount", "User", "Group" })
  elseif subject.apiGroup ~= GROUP then
    errors[#errors + 1] = field.not_supported(path .. ".apiGroup", subject.apiGroup or "", { GROUP })
  end
end


local function check_reference(reference, kinds, errors)
  if reference.apiGroup ~= GROUP then
    errors[#errors + 1] = field.not_supported("roleRef.apiGroup", reference.apiGroup, { GROUP })
  end
  if reference.kind ~= kinds[1] and reference.kind ~= kinds[2] then
    errors[#errors + 1] = field.not_supported("roleRef.kind", reference.kind, kinds)
  end
  if reference.name == "" then
    errors[#errors + 1] = field.required("roleRef.name", "")
  else
    check.each(errors, "roleRef.name", reference.name, names.path_segment(reference.name))
  end
end


local function binding_validation(namespaced)
  local kinds = namespaced and { "Role", "ClusterRole" } or { "ClusterRole" }
  return function(object)
    local errors = {}
    check_reference(object.roleRef, kinds, errors)
    for i, subject in ipairs(object.subjects or NONE) do
      check_subject(subject, namespaced, ("subjects[%d]"):format(i - 1), errors)
    end
    return errors
  end
end


local function default_binding(object)
  local reference = object.roleRef
  reference.apiGroup = reference.apiGroup ~= "" and reference.apiGroup or GROUP
  for _, subject in ipairs(object.subjects or NONE) do
    if OF_GROUP[subject.kind] then
      subject.apiGroup = subject.apiGroup or GROUP
    end
  end
end


local function binding_update_validation(validate)
  return function(new, old)
    local errors = validate(new)
    if not host.json.equal(new.roleRef, old.roleRef) then
      local role_ref_text = check.go_struct {
        { "APIGroup", new.roleRef.apiGroup }, { "Kind", new.roleRef.kind }, { "Name", new.roleRef.name },
      }
      errors[#errors + 1] = check.invalid_text("roleRef", role_ref_text, "cannot change roleRef")
    end
    return errors
  end
end


local function binding_cells(obj, now)
  local by_kind = { User = {}, Group = {}, ServiceAccount = {} }
  for _, subject in ipairs(obj.subjects or {}) do
    local list = by_kind[subject.kind]
    local name = subject.kind == "ServiceAccount" and (subject.namespace or "") .. "/" .. subject.name or subject.name
    list[#list + 1] = name
  end
  return {
    obj.metadata.name, ("%s/%s"):format(obj.roleRef.kind, obj.roleRef.name), age.of(obj, now),
    table.concat(by_kind.User, ", "), table.concat(by_kind.Group, ", "), table.concat(by_kind.ServiceAccount, ", "),
  }
end


local function strategy(rules)
  local function prepare(object, old, ctx)
    check.empty_to_null(object, "rules")
    return nil, rules.may(object, old, ctx)
  end
  return {
    name = names.path_segment, spec_changed = false, create_on_update = true,
    defaults = rules.defaults, validate = rules.validate, validate_update = rules.validate_update or rules.validate,
    prepare_create = function(object, ctx)
      return prepare(object, nil, ctx)
    end,
    prepare_update = prepare,
    cells = rules.cells,
  }
end


local function role(namespaced)
  return strategy { validate = role_validation(namespaced), may = escalation.role }
end


local function binding(namespaced)
  local validate = binding_validation(namespaced)
  return strategy {
    validate = validate, validate_update = binding_update_validation(validate), defaults = default_binding,
    may = escalation.binding, cells = binding_cells,
  }
end


return {
  ClusterRole = role(false), ClusterRoleBinding = binding(false), Role = role(true), RoleBinding = binding(true),
}
