--- MutatingAdmissionPolicies and their bindings: the plugin that changes objects as they say.
---
--- Policies that ask for it are evaluated once more after the webhooks, if the object was changed after them.
--- Rules and wordings: apiserver/pkg/admission/plugin/policy/mutating/{dispatcher,compilation}.go.
local activation = require "cluster.apiserver.admission.policies.activation"
local apply_patch = require "cluster.apiserver.apply.patch"
local bound = require "cluster.apiserver.admission.policies.bound"
local change = require "cluster.apiserver.admission.change"
local compile = require "cluster.apiserver.admission.policies.compile"
local denial = require "cluster.apiserver.admission.policies.denial"
local evaluate = require "cluster.apiserver.admission.policies.evaluate"
local host = require "cluster.host"
local match = require "cluster.apiserver.admission.match"
local params = require "cluster.apiserver.admission.policies.params"
local patch_types = require "cluster.apiserver.admission.policies.patch_types"
local patches = require "cluster.apiserver.patch"

local M = {}

local GROUP = ".admissionregistration.k8s.io"
local POLICIES, BINDINGS = "mutatingadmissionpolicies" .. GROUP, "mutatingadmissionpolicybindings" .. GROUP

local policies = bound.new(POLICIES, BINDINGS, compile.mutating)


-- Each makes of an object what the value of an expression says: object, or nil and why it cannot.
local PATCH = {
  ApplyConfiguration = function(value, object, kind)
    local part, why = patch_types.part(value)
    if not part then
      return nil, why
    end
    part.apiVersion, part.kind = object.apiVersion, object.kind
    object, why = apply_patch(kind, object, part)
    return object, why and "error applying patch: " .. why
  end,

  JSONPatch = function(value, object)
    local operations, why = patch_types.operations(value)
    if not operations then
      return nil, why
    end
    local changed = object
    for _, operation in ipairs(operations) do
      local failure
      changed, failure = patches.json(changed, host.json.array { operation })
      if not changed and operation.op == "test" then
        return object -- whose test fails is left out
      elseif not changed then
        return nil, "JSON Patch: " .. failure.message
      end
    end
    return changed
  end,
}


-- Carries out one mutation. @return boolean|nil changed, or nil and why it cannot be
local function mutate(attributes, policy, mutation, res, param)
  local bindings = activation.bindings(attributes, res)
  if param ~= params.NONE then
    bindings = setmetatable({ params = activation.value(param) }, { __index = bindings })
  end
  local value, why = evaluate.mutation(policy, mutation, bindings)
  if why then
    return nil, why
  end
  local before = match.version_of(attributes.object, res, attributes)
  local view = attributes.request.admission_view
  local object
  object, why = PATCH[mutation.item.patchType](value, before, view and view.kind or res)
  if not object then
    return nil, why
  end
  return object ~= before and change(attributes, before, object, res)
end


-- Returns true if the matchConditions of a policy hold. @return boolean, string|nil why that is not known
local function holds(attributes, policy, res, param)
  if #policy.conditions == 0 then
    return true
  end
  local own = { variables = policy.names, params = param ~= params.NONE and activation.value(param) or nil }
  local bindings = setmetatable(own, { __index = activation.bindings(attributes, res) })
  local answer, why = evaluate.conditions(policy, bindings)
  return answer == "yes", not answer and why or nil
end


-- @param run table { attributes, denied, again: keys of those to evaluate once more, is_changed }
local function invoke(run, policy, binding, res, param)
  local attributes = run.attributes
  local function fail(why)
    if policy.spec.failurePolicy ~= "Ignore" then
      run.denied[#run.denied + 1] = { policy = policy, binding = binding, message = why, reason = "Invalid" }
    end
  end
  local ready, why = holds(attributes, policy, res, param)
  if why then
    return fail(why)
  elseif not ready then
    return
  end
  for _, mutation in ipairs(attributes.object and policy.mutations or {}) do
    local changed
    changed, why = mutate(attributes, policy, mutation, res, param)
    if changed == nil then
      fail(why)
    end
    run.is_changed = run.is_changed or changed
  end
end


-- The key that tells a policy with a binding and a parameter from others.
local function key_of(policy, binding, param)
  local meta = param ~= params.NONE and param.metadata or {}
  return table.concat({ policy.name, binding.metadata.name, meta.namespace or "", meta.name or "" }, "\0")
end


local function evaluate_all(attributes, run, only)
  policies:each(attributes, function(policy, binding, why)
    if policy.spec.failurePolicy ~= "Ignore" then
      run.denied[#run.denied + 1] = {
        policy = policy, binding = binding,
        message = ("failed to configure %s: %s"):format(binding and "binding" or "policy", why),
      }
    end
  end, function(policy, binding, res, param)
    local key = key_of(policy, binding, param)
    if only and not only[key] then
      return
    end
    invoke(run, policy, binding, res, param)
    if policy.spec.reinvocationPolicy == "IfNeeded" then
      run.again[key] = true
    end
  end)
  return run.denied[1] and denial.of_mutations(attributes, run.denied) or nil
end


--- Evaluates the policies about a write; attributes.object is changed in place. @return table|nil failure a status
function M.first(attributes)
  local run = { attributes = attributes, denied = {}, again = {}, is_changed = false }
  local failure = evaluate_all(attributes, run)
  run.object = attributes.object and next(run.again) and host.json.copy(attributes.object)
  attributes.mutations = run
  return failure
end


--- The same once more, for those that want to see what others have changed. @return table|nil failure
function M.again(attributes)
  local run = attributes.mutations
  if run and run.object and (run.is_changed or not host.json.equal(run.object, attributes.object)) then
    return evaluate_all(attributes, { attributes = attributes, denied = {}, again = {} }, run.again)
  end
end


return M
