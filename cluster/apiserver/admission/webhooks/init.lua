--- Admission webhooks: the two plugins that call them.
---
--- A request that matches one waits for its answer, and others are served meanwhile. So the object may be another one
--- when it goes on: `request.has_waited` tells those who store; see verbs/init.lua.
--- Rules and wordings: apiserver/pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go, generic/webhook.go.
local activation = require "cluster.apiserver.admission.policies.activation"
local await = require "cluster.apiserver.await"
local change = require "cluster.apiserver.admission.change"
local compile = require "cluster.apiserver.admission.policies.compile"
local evaluate = require "cluster.apiserver.admission.policies.evaluate"
local expressions = require "cluster.apiserver.admission.expressions"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local match = require "cluster.apiserver.admission.match"
local patches = require "cluster.apiserver.patch"
local respond = require "cluster.apiserver.respond"
local review = require "cluster.apiserver.admission.webhooks.review"
local status = require "cluster.apiserver.status"
local webhook = require "cluster.apiserver.webhook"

local M = {}

local GROUP = ".admissionregistration.k8s.io"
local MUTATING, VALIDATING = "mutatingwebhookconfigurations" .. GROUP, "validatingwebhookconfigurations" .. GROUP
local FREE_OF_EFFECTS = { None = true, NoneOnDryRun = true }

local by_store = setmetatable({}, { __mode = "k" }) -- store → id → { revision, hooks }


local function hook_of(configuration, spec, place)
  return {
    name = spec.name, spec = spec, variables = {}, uid = ("%s/%d"):format(configuration.metadata.name, place),
    webhook = { config = spec.clientConfig, seconds = spec.timeoutSeconds },
    conditions = compile.conditions(spec.matchConditions, expressions.environment { authorizer = true }),
  }
end


-- The hooks of all configurations of a kind, in the order in which they are called.
local function hooks_of(storage, id)
  local collection, lists = storage:collection(id), by_store[storage] or {}
  local found = lists[id]
  if not found or found.revision ~= collection.revision then
    found = { revision = collection.revision, hooks = {} }
    collection:each(nil, nil, function(entry)
      local configuration = host.json.decode(entry.text)
      for i, spec in ipairs(type(configuration.webhooks) == "table" and configuration.webhooks or {}) do
        table.insert(found.hooks, hook_of(configuration, spec, i))
      end
    end)
    lists[id], by_store[storage] = found, lists
  end
  return found.hooks
end


local function is_ignored(hook)
  return hook.spec.failurePolicy == "Ignore"
end


-- Checks if a hook is to be called. @return table|nil the description of the resource as which the write matched
-- @return table|nil failure a status
local function matches(hook, attributes)
  local spec = hook.spec
  local selected, failure = match.namespace_selector(spec.namespaceSelector, attributes)
  local res = (selected or failure) and match.object_selector(spec.objectSelector, attributes)
    and match.rules(spec.rules, spec.matchPolicy, attributes)
  if not res or failure then
    return nil, res and failure or nil
  elseif #hook.conditions == 0 then
    return res
  end
  local answer, why = evaluate.conditions(hook, activation.bindings(attributes, res))
  if not answer and not is_ignored(hook) then
    return nil, status.forbidden(attributes.res, attributes.name, why)
  end
  return answer == "yes" and res or nil
end


local function note(attributes, hook, response)
  local request = attributes.request
  request.annotations = request.annotations or {}
  for key, value in pairs(response.annotations) do
    request.annotations[hook.name .. "/" .. key] = tostring(value)
  end
  for _, warning in ipairs(response.warnings) do
    respond.warn(request, tostring(warning))
  end
end


-- A webhook that could not be called, or did not answer as it should. @return table|nil failure
local function not_called(hook, why)
  host.log("warn", "calling a webhook failed", { webhook = hook.name, policy = hook.spec.failurePolicy, error = why })
  if not is_ignored(hook) then
    return status.internal(("failed calling webhook %s: %s"):format(field.quote(hook.name), why))
  end
end


-- Asks one webhook. @return table|nil response when it allowed the write; @return table|nil failure when it goes no on
local function ask(hook, res, attributes, is_mutating)
  if attributes.dry_run and not FREE_OF_EFFECTS[hook.spec.sideEffects] then
    return nil, status.bad_request(("admission webhook %s does not support dry run"):format(field.quote(hook.name)))
  end
  local sent, why = review.new(hook, res, attributes)
  local text, response
  if sent then
    text, why = await(attributes.request, webhook.post, hook.webhook, attributes.server, sent)
    why = why and "failed to call webhook: " .. why
  end
  if text then
    response, why = review.read(text, sent, is_mutating)
  end
  if not response then
    return nil, not_called(hook, why)
  end
  note(attributes, hook, response)
  if not response.allowed then
    return nil, review.denial(hook.name, response.status)
  end
  return response
end


-- Applies what a mutating webhook wants. @return boolean|nil changed; @return table|nil failure
local function mutate(hook, response, attributes, res)
  if response.patch == "" then
    return false
  elseif response.patch_type ~= "JSONPatch" then
    return false, not_called(hook, ("unsupported patch type %s"):format(field.quote(response.patch_type)))
  end
  local operations, why = host.json.decode(response.patch)
  if not host.json.is_array(operations) and next(operations or { 0 }) then
    return false, not_called(hook, "received undecodable patch in webhook response: " .. (why or "it is no list"))
  elseif #operations == 0 then
    return false
  elseif not attributes.object then
    return false, status.internal(("admission webhook %s attempted to modify the object, which is not supported for "
      .. "this operation"):format(field.quote(hook.name)))
  end
  local before = match.version_of(attributes.object, res, attributes)
  local object, failure = patches.json(before, operations)
  if not object then
    return false, status.internal(failure.message)
  end
  local changed, refused = change(attributes, before, object, res)
  if changed == nil then
    return false, status.internal(refused)
  end
  return changed
end


-- Hooks that ask for it are called again if another one changed the object after them, in the second round too.
local function note_change(reinvocation)
  for uid in pairs(reinvocation.called) do
    reinvocation.again[uid] = true
  end
  reinvocation.called = {}
end


-- @param reinvocation table { called, again }: ids of hooks  @param only table|nil the ids of those that are called
local function mutate_by_all(hooks, attributes, reinvocation, only)
  for _, hook in ipairs(hooks) do
    local res, failure, response, changed
    if not only or only[hook.uid] then
      res, failure = matches(hook, attributes)
    end
    if res then
      response, failure = ask(hook, res, attributes, true)
    end
    if response then
      changed, failure = mutate(hook, response, attributes, res)
    end
    if changed then
      note_change(reinvocation)
    end
    if res and hook.spec.reinvocationPolicy == "IfNeeded" then
      reinvocation.called[hook.uid] = true
    end
    if failure then
      return failure
    end
  end
end


--- Calls the mutating webhooks about a write, one after the other, and those again that asked for it when another one
--- changed the object after them. @return table|nil failure a status
function M.mutating(attributes)
  local hooks, reinvocation = hooks_of(attributes.server.store, MUTATING), { called = {}, again = {} }
  local failure = mutate_by_all(hooks, attributes, reinvocation)
  if not failure and next(reinvocation.again) then
    failure = mutate_by_all(hooks, attributes, reinvocation, reinvocation.again)
  end
  return failure
end


--- Calls all validating webhooks about a write, one after the other. @return table|nil failure that of the first
function M.validating(attributes)
  local calls, first = {}, nil
  for _, hook in ipairs(hooks_of(attributes.server.store, VALIDATING)) do
    local res, failure = matches(hook, attributes)
    if failure then
      return failure
    elseif res then
      calls[#calls + 1] = { hook = hook, res = res }
    end
  end
  for _, call in ipairs(calls) do
    local _, failure = ask(call.hook, call.res, attributes, false)
    first = first or failure
  end
  return first
end


return M
