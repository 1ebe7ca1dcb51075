--- The policies of a kind that have bindings, and what they are evaluated with.
---
--- A policy is compiled when it is first needed, and once: an entry of the store never changes.
--- Rules: apiserver/pkg/admission/plugin/policy/generic/policy_dispatcher.go.
local host = require "cluster.host"
local match = require "cluster.apiserver.admission.match"
local params = require "cluster.apiserver.admission.policies.params"

local M = {}
M.__index = M


--- @param policies string id of the policies  @param bindings string id of their bindings
--- @param compile function(policy) → what is evaluated
function M.new(policies, bindings, compile)
  return setmetatable({
    policies = policies, bindings = bindings, compile = compile,
    compiled = setmetatable({}, { __mode = "k" }), -- entry of a policy → what `compile` makes of it
    by_store = setmetatable({}, { __mode = "k" }), -- store → { revision, policies = bindings of each by its name }
  }, M)
end


-- The bindings of each policy, in the order of their names.
local function bindings_of(self, storage)
  local collection, found = storage:collection(self.bindings), self.by_store[storage]
  if not found or found.revision ~= collection.revision then
    found = { revision = collection.revision, policies = {} }
    collection:each(nil, nil, function(entry)
      local binding = host.json.decode(entry.text)
      local name = binding.spec.policyName
      found.policies[name] = found.policies[name] or {}
      table.insert(found.policies[name], binding)
    end)
    self.by_store[storage] = found
  end
  return found.policies
end


local function policy_of(self, entry)
  local policy = self.compiled[entry]
  if not policy then
    policy = self.compile(host.json.decode(entry.text))
    self.compiled[entry] = policy
  end
  return policy
end


-- The policies that have bindings, in the order of their names: { policy, bindings }.
local function all(self, storage)
  local bound, list = bindings_of(self, storage), {}
  storage:collection(self.policies):each(nil, nil, function(entry)
    if bound[entry.name] then
      list[#list + 1] = { policy = policy_of(self, entry), bindings = bound[entry.name] }
    end
  end)
  return list
end


-- @param found table { policy, bindings }
local function each_invocation(found, attributes, misconfigured, invoke)
  local policy = found.policy
  local res, failure = match.resources(policy.spec.matchConstraints, attributes)
  if failure then
    return misconfigured(policy, nil, failure.message)
  elseif not res then
    return
  end
  local param_res, why
  if policy.spec.paramKind then
    param_res, why = params.kind(policy.spec.paramKind, attributes.server.registry)
    if not param_res then
      return misconfigured(policy, nil, why)
    end
  end
  for _, binding in ipairs(found.bindings) do
    local matched, refused = match.resources(binding.spec.matchResources, attributes)
    local list
    if matched then
      list, refused = params.collect(param_res, binding.spec.paramRef, attributes)
    end
    if refused then
      misconfigured(policy, binding, type(refused) == "table" and refused.message or refused)
    end
    for _, param in ipairs(list or {}) do
      invoke(policy, binding, res, param)
    end
  end
end


--- Calls invoke(policy, binding, res, param) for each policy that matches a write, each binding of it that matches, and
--- each parameter; `res` is the description of the resource as which the policy matched. Calls misconfigured(policy,
--- binding or nil, why) for those that cannot be used. Both may wait.
function M:each(attributes, misconfigured, invoke)
  for _, found in ipairs(all(self, attributes.server.store)) do
    each_invocation(found, attributes, misconfigured, invoke)
  end
end


return M
