--- The rules that one controller needs: from its declaration, and from what calls.lua found in its text.
local calls = require "cluster.analysis.rbac.calls"
local verbs = require "cluster.analysis.rbac.verbs"

local M = {}

local CONSTRUCTED = { ensure = true, create = true, apply = true }
-- In the order in which a rule's comment names them.
local CALLS = { "get", "list", "ensure", "create", "apply", "patch", "delete" }

local function key_of(kind)
  local version = kind.group == "" and kind.version or kind.group .. "/" .. kind.version
  return version .. "/" .. kind.kind
end


-- The rule of a resource, which may be new.
local function rule_of(rules, resource, part)
  local plural = part and resource.plural .. "/" .. part or resource.plural
  local id = resource.group .. "/" .. plural
  if not rules[id] then
    rules[id] = { group = resource.group, resource = plural, namespaced = resource.namespaced, verbs = {}, why = {} }
    rules[#rules + 1] = rules[id]
  end
  return rules[id]
end


local function grant(rule, list, why)
  local is_told = false
  for _, verb in ipairs(list) do
    rule.verbs[verb] = true
  end
  for _, reason in ipairs(rule.why) do
    is_told = is_told or reason == why
  end
  if not is_told then
    rule.why[#rule.why + 1] = why
  end
end


-- Is the kind among those that the calls of `method` have to do with?
local function is_called_with(found, method, kind)
  local with = found.calls[method]
  if not with then
    return false
  end
  local constructed = CONSTRUCTED[method] and (found.constructed.any or found.constructed[kind.kind])
  return with.any or with[key_of(kind)] or constructed or false
end


local function grant_kind(rules, kind, resource, found)
  local rule = rule_of(rules, resource)
  grant(rule, verbs.of_use[kind.use], kind.use)
  for _, method in ipairs(CALLS) do
    if is_called_with(found, method, kind) then
      grant(rule, verbs.of_call[method], "ctx." .. method)
      grant(rule, kind.use == "owns" and verbs.of_owned_call[method] or {}, "ctx." .. method)
    end
  end
  for _, right in ipairs(verbs.of_field) do
    if right.on == kind.use and found.keys[right.field] then
      grant(rule, right.verbs, right.why)
    end
  end
  -- A name that is fixed, of what is only read by name.
  local names = found.names[key_of(kind)]
  local is_only_got = next(rule.verbs) == "get" and not next(rule.verbs, "get")
  if kind.use == "uses" and is_only_got and names and not names[false] then
    rule.names = names
  end
end


local function makes_children(found)
  for method in pairs(CONSTRUCTED) do
    if found.calls[method] then
      return true
    end
  end
  return found.keys.children or false
end


-- Grants what the host itself does with the reconciled kind.
local function grant_reconciled(rules, resource, declared, found, resource_of)
  local owns, owns_cluster_scoped = false, false
  if resource.has_status then
    grant(rule_of(rules, resource, "status"), verbs.status, "its status")
  end
  for _, kind in ipairs(declared) do
    local owned = kind.use == "owns" and resource_of(kind.group, kind.version, kind.kind)
    owns = owns or kind.use == "owns"
    owns_cluster_scoped = owns_cluster_scoped or owned and not owned.namespaced or false
  end
  -- An annotation lists children without an owner reference (host/script/ctx_children.c).
  if found.keys.children and resource.namespaced and (owns_cluster_scoped or found.keys.namespace) then
    grant(rule_of(rules, resource), verbs.inventory, "its inventory of children that it cannot own")
  end
  if owns and makes_children(found) or found.calls.once then
    grant(rule_of(rules, resource, "finalizers"), verbs.finalizers,
      "blockOwnerDeletion, where the admission plugin OwnerReferencesPermissionEnforcement is on")
  end
end


-- A binding gives rights away: the API server asks for the right to bind that very role. A role that the text does not
-- tell has to be named (--bind): the right to bind any role is the right to do everything.
local function grant_binds(rules, script, found, bound, notes)
  local is_binding = false
  for _, rule in ipairs(rules) do
    is_binding = is_binding or rule.group == "rbac.authorization.k8s.io" and rule.verbs.create
      and (rule.resource == "rolebindings" or rule.resource == "clusterrolebindings")
  end
  if not is_binding then
    return
  end
  local names = { clusterroles = {}, roles = {} }
  for role, name in pairs(found.binds) do
    if role ~= "any" then
      names[role:match "^%a+"][name] = true
    end
  end
  for _, name in ipairs(found.binds.any and bound or {}) do
    names.clusterroles[name] = true
  end
  for _, resource in ipairs { "clusterroles", "roles" } do
    if next(names[resource]) then
      local rule = rule_of(rules, { group = "rbac.authorization.k8s.io", plural = resource, namespaced = false }, "")
      rule.resource, rule.names = resource, names[resource]
      grant(rule, { "bind" }, "what its bindings give away")
    end
  end
  if found.binds.any and #bound == 0 then
    notes[#notes + 1] = ("%s: it binds roles that its text does not name; without --bind ROLE the API server refuses "
      .. "these bindings"):format(script.file)
  end
end


local function drop_empty(rules)
  local unique_rules = {}
  for _, rule in ipairs(rules) do
    if next(rule.verbs) then
      unique_rules[#unique_rules + 1] = rule
    end
  end
  return unique_rules
end


--- @param script table { file =, name =, kinds = { { group =, version =, kind =, use =, line = } }, texts = {} }
--- @param resource_of function of kinds.lua
--- @return table list of { group =, resource =, namespaced =, verbs = set, why = list, names = set or nil }; and a list
---   of what is wrong, one line each; and whether it makes Events about other objects; `bound`: names of ClusterRoles
---   that may be given away; `notes` gets lines
function M.of(script, resource_of, bound, notes)
  local rules, problems = {}, {}
  local found = calls.find(script.texts, key_of(script.kinds[1]))
  for index, kind in ipairs(script.kinds) do
    local resource = resource_of(kind.group, kind.version, kind.kind)
    if not resource then
      problems[#problems + 1] = ("%s:%d: %s is neither a built-in kind nor in the given CRDs, so its resource is not "
        .. "known: give its CustomResourceDefinition with --crds"):format(script.file, kind.line, key_of(kind))
    else
      grant_kind(rules, kind, resource, found)
      if index == 1 then
        grant_reconciled(rules, resource, script.kinds, found, resource_of)
      end
    end
  end
  if found.calls.once then
    grant(rule_of(rules, resource_of("", "v1", "Secret")), verbs.once, "ctx.once")
  end
  grant_binds(rules, script, found, bound, notes)
  return drop_empty(rules), problems, found.keys.about ~= nil and found.calls.event ~= nil
end


return M
