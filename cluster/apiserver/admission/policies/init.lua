--- ValidatingAdmissionPolicies and their bindings: the plugin that enforces them.
---
--- Each policy that has bindings and matches a write is evaluated for each binding that matches, and each parameter of
--- it; see bound.lua.
--- Rules and wordings: apiserver/pkg/admission/plugin/policy/validating/dispatcher.go.
local activation = require "cluster.apiserver.admission.policies.activation"
local bound = require "cluster.apiserver.admission.policies.bound"
local compile = require "cluster.apiserver.admission.policies.compile"
local denial = require "cluster.apiserver.admission.policies.denial"
local evaluate = require "cluster.apiserver.admission.policies.evaluate"
local host = require "cluster.host"
local params = require "cluster.apiserver.admission.policies.params"
local respond = require "cluster.apiserver.respond"

local M = {}

local GROUP = ".admissionregistration.k8s.io"
local POLICIES, BINDINGS = "validatingadmissionpolicies" .. GROUP, "validatingadmissionpolicybindings" .. GROUP
local VALUE_MAX = 10 * 1024
local FAILURE_KEY = "validation.policy.admission.k8s.io/validation_failure"

local policies = bound.new(POLICIES, BINDINGS, compile.policy)


local function deny(run, policy, binding, denied)
  run.denied[#run.denied + 1] = { policy = policy, binding = binding, message = denied.message, reason = denied.reason }
end


-- A policy or a binding that cannot be used.
local function misconfigured(run, policy, binding, why)
  if policy.spec.failurePolicy ~= "Ignore" then
    deny(run, policy, binding, {
      message = ("failed to configure %s: %s"):format(binding and "binding" or "policy", why),
    })
  end
end


local function note_failure(run, policy, binding, denied)
  run.notes[FAILURE_KEY] = host.json.encode(host.json.array { {
    message = denied.message, policy = policy.name, binding = binding.metadata.name, expressionIndex = denied.index,
    validationActions = binding.spec.validationActions,
  } })
end


local ACT = {
  Deny = deny,
  Warn = function(run, policy, binding, denied)
    respond.warn(run.attributes.request,
      ("Validation failed for ValidatingAdmissionPolicy '%s' with binding '%s': %s"):format(
        policy.name, binding.metadata.name, denied.message))
  end,
  Audit = note_failure,
}


local function annotate(run, policy, annotations)
  for _, annotation in ipairs(annotations) do
    local key, value = policy.name .. "/" .. annotation.key, annotation.value:sub(1, VALUE_MAX)
    local known = run.values[key] or {}
    if not known[value] then
      known[value] = true
      run.values[key] = known
      run.notes[key] = run.notes[key] and run.notes[key] .. ", " .. value or value
    end
  end
end


local function act(run, policy, binding, verdict)
  for _, denied in ipairs(verdict.denied) do
    for _, action in ipairs(binding.spec.validationActions) do
      ACT[action](run, policy, binding, denied)
    end
  end
  annotate(run, policy, verdict.annotations)
  for _, message in ipairs(verdict.errors) do
    deny(run, policy, binding, { message = message })
  end
end


-- Evaluates a policy that matched as `res`, for one binding and one parameter.
local function invoke(run, policy, binding, res, param)
  run.bindings[res] = run.bindings[res] or activation.bindings(run.attributes, res)
  local bindings = run.bindings[res]
  if param ~= params.NONE then
    bindings = setmetatable({ params = activation.value(param) }, { __index = bindings })
  end
  act(run, policy, binding, evaluate.policy(policy, bindings))
end


--- Asks the policies about a write. @return table|nil failure a status
function M.check(attributes)
  local run = { attributes = attributes, denied = {}, notes = {}, values = {}, bindings = {} }
  policies:each(attributes, function(policy, binding, why)
    misconfigured(run, policy, binding, why)
  end, function(...)
    invoke(run, ...)
  end)
  if next(run.notes) then
    local request = attributes.request
    request.annotations = request.annotations or {}
    for key, value in pairs(run.notes) do
      request.annotations[key] = value
    end
  end
  return run.denied[1] and denial.of_validation(attributes, run.denied[1]) or nil
end


return M
