--- ValidatingAdmissionPolicies and their bindings: the plugin that enforces them.
---
--- Each policy that has bindings and matches a write is evaluated for each binding that matches, and each parameter of
--- it. A policy is compiled when it is first needed, and once: an entry of the store never changes.
--- Rules and wordings: apiserver/pkg/admission/plugin/policy/validating/dispatcher.go.
local compile = require "cluster.apiserver.admission.policies.compile"
local evaluate = require "cluster.apiserver.admission.policies.evaluate"
local host = require "cluster.host"
local input = require "cluster.apiserver.admission.policies.input"
local match = require "cluster.apiserver.admission.match"
local params = require "cluster.apiserver.admission.policies.params"
local respond = require "cluster.apiserver.respond"
local status = require "cluster.apiserver.status"

local M = {}

local GROUP = ".admissionregistration.k8s.io"
local POLICIES, BINDINGS = "validatingadmissionpolicies" .. GROUP, "validatingadmissionpolicybindings" .. GROUP
local CODES = { Forbidden = 403, Unauthorized = 401, RequestEntityTooLarge = 413 }
local VALUE_MAX = 10 * 1024
local FAILURE_KEY = "validation.policy.admission.k8s.io/validation_failure"

M.watches = { BINDINGS }

local compiled = setmetatable({}, { __mode = "k" }) -- entry of a policy → what compile.lua makes of it
local by_store = setmetatable({}, { __mode = "k" }) -- store → { revision, policy = bindings of it by its name }


local function policy_of(entry)
  local policy = compiled[entry]
  if not policy then
    policy = compile.policy(host.json.decode(entry.text))
    compiled[entry] = policy
  end
  return policy
end


-- The bindings of each policy, in the order of their names.
local function bindings_of(kept)
  local collection, found = kept:collection(BINDINGS), by_store[kept]
  if not found or found.revision ~= collection.revision then
    found = { revision = collection.revision, policies = {} }
    collection:each(nil, nil, function(entry)
      local binding = host.json.decode(entry.text)
      local name = binding.spec.policyName
      found.policies[name] = found.policies[name] or {}
      table.insert(found.policies[name], binding)
    end)
    by_store[kept] = found
  end
  return found.policies
end


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


-- Evaluates a policy that matched as `res`, for one binding. @return table|nil failure
local function bind(run, policy, binding, res, param_res)
  local matched, failure = match.resources(binding.spec.matchResources, run.attributes)
  if failure then
    return misconfigured(run, policy, binding, failure.message)
  elseif not matched then
    return nil
  end
  local found, why = params.collect(param_res, binding.spec.paramRef, run.attributes)
  if not found then
    return misconfigured(run, policy, binding, why)
  end
  for _, param in ipairs(found) do
    run.bindings[res] = run.bindings[res] or input.bindings(run.attributes, res)
    local bindings = run.bindings[res]
    if param ~= params.NONE then
      bindings = setmetatable({ params = input.value(param) }, { __index = bindings })
    end
    act(run, policy, binding, evaluate.policy(policy, bindings))
  end
end


local function ask(run, policy, bindings)
  local attributes = run.attributes
  local res, failure = match.resources(policy.spec.matchConstraints, attributes)
  if failure then
    return misconfigured(run, policy, nil, failure.message)
  elseif not res then
    return
  end
  local param_res, why
  if policy.spec.paramKind then
    param_res, why = params.kind(policy.spec.paramKind, attributes.server.registry)
    if not param_res then
      return misconfigured(run, policy, nil, why)
    end
  end
  for _, binding in ipairs(bindings) do
    bind(run, policy, binding, res, param_res)
  end
end


local function refusal(attributes, denied)
  local with = denied.binding and (" with binding '%s'"):format(denied.binding.metadata.name) or ""
  local message = ("ValidatingAdmissionPolicy '%s'%s denied request: %s"):format(denied.policy.name, with,
    denied.message)
  local failure = status.forbidden(attributes.res, attributes.name ~= "" and attributes.name or "Unknown", message)
  failure.reason = denied.reason or "Invalid"
  failure.code = CODES[failure.reason] or 422
  failure.details.causes = host.json.array { { message = message } }
  return failure
end


--- Asks the policies about a write. @return table|nil failure a status
function M.check(attributes)
  local kept = attributes.server.store
  local bound = bindings_of(kept)
  local run = { attributes = attributes, denied = {}, notes = {}, values = {}, bindings = {} }
  local policies = {}
  kept:collection(POLICIES):each(nil, nil, function(entry)
    if bound[entry.name] then
      policies[#policies + 1] = entry
    end
  end)
  for _, entry in ipairs(policies) do -- what is asked about may have to be converted first: the request waits
    ask(run, policy_of(entry), bound[entry.name])
  end
  if next(run.notes) then
    local request = attributes.request
    request.annotations = request.annotations or {}
    for key, value in pairs(run.notes) do
      request.annotations[key] = value
    end
  end
  return run.denied[1] and refusal(attributes, run.denied[1]) or nil
end


return M
