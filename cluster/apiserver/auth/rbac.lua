--- Roles and bindings: which rules a user has, and what they allow.
---
--- Rules: kubernetes/pkg/registry/rbac/validation/rule.go, kubernetes/plugin/pkg/auth/authorizer/rbac/rbac.go.
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local rules = require "cluster.apiserver.auth.rules"

local M = {}
M.__index = M

local GROUP = ".rbac.authorization.k8s.io"
local IDS = {
  "clusterrolebindings" .. GROUP, "rolebindings" .. GROUP, "clusterroles" .. GROUP, "roles" .. GROUP,
}


--- Reads roles and bindings from a store.
function M.new(store)
  return setmetatable({ store = store, revision = -1 }, M)
end


-- Forgets all results if a role or a binding has changed since they were computed.
local function refresh(self)
  local revision = 0
  for _, id in ipairs(IDS) do
    revision = math.max(revision, self.store:collection(id).revision)
  end
  if revision ~= self.revision then
    self.revision = revision
    self.bindings = {}
    self.roles = {}
    self.granted = setmetatable({}, { __mode = "k" })
  end
end


-- The bindings of a namespace, or of the whole cluster ("").
local function bindings_of(self, namespace)
  local list = self.bindings[namespace]
  if not list then
    list = {}
    local id = namespace == "" and IDS[1] or IDS[2]
    self.store:collection(id):each(namespace, nil, function(entry)
      list[#list + 1] = host.json.decode(entry.text)
    end)
    self.bindings[namespace] = list
  end
  return list
end


--- The rules of a role that a binding refers to. @return table|nil rules, string|nil why there are none
function M:rules_of(ref, namespace)
  refresh(self)
  local is_cluster = ref.kind == "ClusterRole"
  local id = is_cluster and IDS[3] or IDS[4]
  local entry = self.store:get(id, is_cluster and "" or namespace, ref.name)
  if not entry then
    return nil, ('%s%s %s not found'):format(ref.kind:lower(), GROUP, field.quote(ref.name))
  end
  if not self.roles[entry] then
    local found = host.json.decode(entry.text).rules
    self.roles[entry] = found ~= host.json.null and found or {}
  end
  return self.roles[entry]
end


local function has_group(user, name)
  for _, group in ipairs(user.groups or {}) do
    if group == name then
      return true
    end
  end
  return false
end


local function is_subject(user, subject, namespace)
  if subject.kind == "User" then
    return user.name == subject.name
  elseif subject.kind == "Group" then
    return has_group(user, subject.name)
  end
  local space = subject.namespace and subject.namespace ~= "" and subject.namespace or namespace
  return space ~= "" and user.name == ("system:serviceaccount:%s:%s"):format(space, subject.name)
end


-- 'RoleBinding "readers/ns" of Role "reader" to User "jane"', or nil when the binding is not about the user.
local function source_of(user, binding, namespace)
  for _, subject in ipairs(binding.subjects or {}) do
    if is_subject(user, subject, namespace) then
      local name, who = binding.metadata.name, subject.name
      if subject.kind == "ServiceAccount" then
        who = who .. "/" .. (subject.namespace ~= "" and subject.namespace or namespace)
      end
      return ("%s %s of %s %s to %s %s"):format(namespace == "" and "ClusterRoleBinding" or "RoleBinding",
        field.quote(namespace == "" and name or name .. "/" .. namespace), binding.roleRef.kind,
        field.quote(binding.roleRef.name), subject.kind, field.quote(who))
    end
  end
  return nil
end


local function add_rules(self, grants, user, namespace)
  for _, binding in ipairs(bindings_of(self, namespace)) do
    local source = source_of(user, binding, namespace)
    if source then
      local found, why = self:rules_of(binding.roleRef, namespace)
      grants.problems[#grants.problems + 1] = why
      for _, rule in ipairs(found or {}) do
        grants.rules[#grants.rules + 1] = rule
        grants.sources[#grants.sources + 1] = source
      end
    end
  end
end


--- The rules that are granted to a user in a namespace ("" for the whole cluster only).
--- @return table granted rules; sources: where each comes from; problems: why some could not be read
function M:granted_to(user, namespace)
  refresh(self)
  local of_user = self.granted[user]
  if not of_user then
    of_user = {}
    self.granted[user] = of_user
  end
  local granted = of_user[namespace]
  if not granted then
    granted = { rules = {}, sources = {}, problems = {} }
    add_rules(self, granted, user, "")
    if namespace ~= "" then
      add_rules(self, granted, user, namespace)
    end
    of_user[namespace] = granted
  end
  return granted
end


local function aggregate(problems)
  local seen, list = {}, {}
  for _, problem in ipairs(problems) do
    if not seen[problem] then
      seen[problem] = true
      list[#list + 1] = problem
    end
  end
  return #list == 1 and list[1] or "[" .. table.concat(list, ", ") .. "]"
end


--- @return boolean allowed, string reason "" when there is nothing to say
function M:authorize(user, attributes)
  local grants = self:granted_to(user, attributes.is_resource and attributes.namespace or "")
  for i, rule in ipairs(grants.rules) do
    if rules.allows(rule, attributes) then
      return true, "RBAC: allowed by " .. grants.sources[i]
    end
  end
  return false, grants.problems[1] and "RBAC: " .. aggregate(grants.problems) or ""
end


return M
