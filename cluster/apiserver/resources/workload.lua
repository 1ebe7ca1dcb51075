--- Functions shared by the kinds that create pods from a template.
---
--- Rules: kubernetes/pkg/apis/apps/validation/validation.go, pkg/registry/apps/*/strategy.go.
local check = require "cluster.apiserver.resources.check"
local later = require "cluster.later"
local defaults = later.module "cluster.apiserver.resources.pod.defaults"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local selectors = require "cluster.apiserver.resources.selectors"
local template = later.module "cluster.apiserver.resources.pod.template"

local M = {}

local TOO_MANY = "cannot be greater than status.replicas"


--- Defaults of spec.template.
function M.default_template(object)
  defaults.spec(object.spec.template.spec)
end


--- spec.selector: it has to be there, and must not select everything. `what` names the kind in messages.
--- @return boolean whether it can be used
function M.check_selector(selector, what, errors)
  if not selector then
    errors[#errors + 1] = field.required("spec.selector", "")
    return true
  end
  local before = #errors
  selectors.validate(selector, "spec.selector", errors)
  local usable = #errors == before
  if selectors.is_empty(selector) then
    errors[#errors + 1] = field.invalid("spec.selector", selector, "empty selector is invalid for " .. what)
  end
  return usable
end


--- Checks that the selector selects the template's labels; a missing selector selects nothing.
function M.check_labels(spec, errors)
  local labels = spec.template.metadata.labels
  local selector = spec.selector
  if not selector or not selectors.is_empty(selector) and not selectors.matches(selector, labels) then
    errors[#errors + 1] = field.invalid("spec.template.metadata.labels", labels or host.json.null,
      "`selector` does not match template `labels`")
  end
end


--- Selector and template of a Deployment or ReplicaSet: pods that run for ever. Messages call both a deployment.
function M.check_pods(spec, errors)
  if not M.check_selector(spec.selector, "deployment", errors) then
    errors[#errors + 1] = field.invalid("spec.selector", spec.selector, "invalid label selector")
    return
  end
  M.check_labels(spec, errors)
  template.validate(spec.template, "spec.template", errors)
  M.check_endless(spec.template.spec, "ReplicaSet", errors)
end


--- Pods that are always started again, without an end.
function M.check_endless(pod, what, errors)
  if pod.restartPolicy ~= "Always" then
    errors[#errors + 1] = field.not_supported("spec.template.spec.restartPolicy", pod.restartPolicy, { "Always" })
  end
  if pod.activeDeadlineSeconds then
    errors[#errors + 1] = field.forbidden("spec.template.spec.activeDeadlineSeconds",
      ("activeDeadlineSeconds in %s is not Supported"):format(what))
  end
end


--- Numbers of `object` below `path` that may not be negative.
function M.not_negative(object, path, names, errors)
  for _, name in ipairs(names) do
    check.not_negative(object[name], path .. "." .. name, errors)
  end
end


--- Numbers of a status that are parts of its replicas, and those that are available, which are parts of the ready ones.
--- `ready` is what messages call these.
function M.check_counts(status, names, ready, errors)
  local replicas = status.replicas or 0
  for _, name in ipairs(names) do
    local value = status[name] or 0
    if value > replicas then
      errors[#errors + 1] = field.invalid("status." .. name, value, TOO_MANY)
    end
  end
  local available = status.availableReplicas or 0
  if available > (status.readyReplicas or 0) then
    errors[#errors + 1] = field.invalid("status.availableReplicas", available, "cannot be greater than " .. ready)
  end
end


--- status.collisionCount only grows.
function M.check_collisions(new, old, errors)
  local now, before = new.status.collisionCount, old.status.collisionCount
  if before and (not now or now < before) then
    errors[#errors + 1] = field.invalid("status.collisionCount", now or 0, "cannot be decremented")
  end
end


local EMPTY = {
  Deployment = {}, ReplicaSet = { replicas = 0 }, ReplicationController = { replicas = 0 },
  CronJob = {},
  StatefulSet = { replicas = 0, availableReplicas = 0 }, Job = {},
}


--- A strategy's prepare_create: a new object has no status of its own.
function M.clear_status(object)
  object.status = host.json.copy(EMPTY[object.kind])
end


--- A strategy's prepare_update: the status stays as it was.
function M.keep_status(new, old)
  new.status = old.status
end


--- A strategy's prepare_status: everything but the status stays as it was.
function M.keep_spec(new, old)
  new.spec = old.spec
end


return M
