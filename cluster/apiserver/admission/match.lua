--- Which writes a policy or a webhook is about.
---
--- Rules: apiserver/pkg/admission/plugin/policy/matching/matching.go, pkg/admission/plugin/webhook/predicates/
--- {rules/rules.go,namespace/matcher.go,object/matcher.go}, pkg/admission/plugin/webhook/generic/webhook.go.
local label_selector = require "cluster.apiserver.selector.label_selector"
local status = require "cluster.apiserver.status"
local store = require "cluster.apiserver.store"
local versioned_storage = require "cluster.apiserver.versioned_storage"

local M = {}

local NONE = {}
local NAMESPACE = { api_version = "v1", kind = "Namespace" }


local function has(list, wanted)
  for _, item in ipairs(list or NONE) do
    if item == "*" or item == wanted then
      return true
    end
  end
  return false
end


local function in_scope(scope, attributes)
  if (scope or "*") == "*" then
    return true
  end
  local is_cluster = attributes.res.id == "namespaces" or attributes.namespace == ""
  return is_cluster == (scope == "Cluster")
end


local function has_resource(list, plural, subresource)
  for _, text in ipairs(list or NONE) do
    local name, part = text:match "^([^/]*)/?(.*)$"
    if (name == "*" or name == plural) and (part == "*" or part == subresource) then
      return true
    end
  end
  return false
end


--- Returns true if a rule is about a write, taken as a write of the resource `res`.
function M.rule(rule, attributes, res)
  return in_scope(rule.scope, attributes) and has(rule.operations, attributes.operation)
    and has(rule.apiGroups, res.group) and has(rule.apiVersions, res.version)
    and has_resource(rule.resources, res.plural, attributes.subresource)
end


local function has_name(rule, name)
  local names = rule.resourceNames
  if not names or #names == 0 then
    return true
  end
  for _, wanted in ipairs(names) do
    if wanted == name then
      return true
    end
  end
  return false
end


-- The resource as which one of the rules is about the write, or nil.
local function by_rules(rules, res, attributes)
  for _, rule in ipairs(rules or NONE) do
    if M.rule(rule, attributes, res) and has_name(rule, attributes.name) then
      return res
    end
  end
end


--- The description of the resource as which one of the rules is about the write: that of the request, or, unless the
--- policy is Exact, another version of it. nil: none is.
--- @param rules list|nil of rules with operations, and resourceNames perhaps
function M.rules(rules, policy, attributes)
  local found = by_rules(rules, attributes.res, attributes)
  if found or policy ~= "Equivalent" then
    return found
  end
  for _, rule in ipairs(rules or NONE) do
    for _, other in ipairs(attributes.server.registry.versions[attributes.res.id] or NONE) do
      if other ~= attributes.res and M.rule(rule, attributes, other) and has_name(rule, attributes.name) then
        return other
      end
    end
  end
end


local function is_everything(selector)
  return not selector or label_selector.is_empty(selector)
end


--- The namespace of a write, or nil when there is none.
function M.namespace(attributes)
  local entry = attributes.server.store:get("namespaces", "", attributes.namespace)
  return entry and store.object(NAMESPACE, entry)
end


--- Returns true if a namespaceSelector selects the write's namespace, or if the object is in no namespace.
--- @return boolean, table|nil failure a status if the namespace does not exist
function M.namespace_selector(selector, attributes)
  local res = attributes.res
  if attributes.namespace == "" and res.plural ~= "namespaces" or is_everything(selector) then
    return true
  end
  local namespace
  if res.plural == "namespaces" and attributes.subresource == "" and attributes.object then
    namespace = attributes.object
  else
    namespace = M.namespace(attributes)
  end
  if not namespace then
    return false, status.not_found({ group = "", plural = "namespaces" }, attributes.namespace)
  end
  return label_selector.match(selector, namespace.metadata.labels)
end


--- Returns true if an objectSelector selects the new or the old object.
function M.object_selector(selector, attributes)
  if is_everything(selector) then
    return true
  end
  local object, old = attributes.object, attributes.old
  return object ~= nil and object.metadata ~= nil and label_selector.match(selector, object.metadata.labels)
    or old ~= nil and old.metadata ~= nil and label_selector.match(selector, old.metadata.labels)
end


--- Checks a write against matchConstraints or matchResources.
--- @param resources table|nil matchPolicy, namespaceSelector, objectSelector, resourceRules, excludeResourceRules;
---   without resourceRules it is about all resources
--- @return table|nil res the description of the resource as which it matched; nil: it did not match
--- @return table|nil failure a status if it would match, but its namespace does not exist
function M.resources(resources, attributes)
  resources = resources or NONE
  local selected, failure = M.namespace_selector(resources.namespaceSelector, attributes)
  if not selected and not failure or not M.object_selector(resources.objectSelector, attributes)
    or M.rules(resources.excludeResourceRules, resources.matchPolicy, attributes) then
    return nil
  end
  local rules, res = resources.resourceRules, attributes.res
  if rules and #rules > 0 then
    res = M.rules(rules, resources.matchPolicy, attributes)
  end
  if res and failure then
    return nil, failure
  end
  return res
end


--- An object of a write as another version of its resource has it; see stored.converted.
--- @param res table|nil description as M.resources gave it
function M.version_of(object, res, attributes)
  if not object or res == attributes.res or attributes.request.admission_view then
    return object
  end
  return versioned_storage.convert_or_raise(attributes.request, object, attributes.res, res)
end


return M
