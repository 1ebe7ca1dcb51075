--- Pods.
---
--- Rules: kubernetes/pkg/registry/core/pod/strategy.go.
local admission = require "cluster.apiserver.resources.pod.admission"
local cells = require "cluster.apiserver.tables.cells.pod"
local check = require "cluster.apiserver.resources.check"
local connect = require "cluster.apiserver.resources.pod.connect"
local defaults = require "cluster.apiserver.resources.pod.defaults"
local eviction = require "cluster.apiserver.resources.pod.eviction"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local limitranger = require "cluster.apiserver.resources.limitranger"
local parts = require "cluster.apiserver.resources.pod.parts"
local qos = require "cluster.apiserver.resources.pod.qos"
local spec_rules = require "cluster.apiserver.resources.pod.spec"
local update = require "cluster.apiserver.resources.pod.update"
local warnings = require "cluster.apiserver.resources.pod.warnings"

local ENDED = { Succeeded = true, Failed = true }


-- A pod with gates is not scheduled before they are gone, and says so.
local function gated_condition(spec)
  if not spec.schedulingGates then
    return nil
  end
  return host.json.array { {
    type = "PodScheduled", status = "False", reason = "SchedulingGated",
    message = "Scheduling is blocked due to non-empty scheduling gates",
    lastProbeTime = host.json.null, lastTransitionTime = host.timestamp(),
  } }
end


local function prepare_create(object, ctx)
  limitranger.complete(object, ctx)
  local failure = admission.admit(object, ctx)
  if failure then
    return nil, failure
  end
  object.status = { phase = "Pending", qosClass = qos.class(object.spec), conditions = gated_condition(object.spec) }
end


local function validate(object)
  local errors, spec = {}, object.spec
  spec_rules.validate_pod(spec, "spec", errors)
  if spec.ephemeralContainers then
    errors[#errors + 1] = field.forbidden("spec.ephemeralContainers", "cannot be set on create")
  end
  if spec.nodeName and spec.schedulingGates then
    errors[#errors + 1] = field.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")
  end
  return errors
end


local function prepare_update(new, old)
  admission.readmit(new, old)
  new.status = old.status
end


-- Conditions and the whole status keep the generation they were made for when the writer does not know of it.
local function keep_observed(new, old)
  new.observedGeneration = new.observedGeneration or old.observedGeneration
  local known = {}
  for _, condition in ipairs(old.conditions or {}) do
    known[condition.type] = known[condition.type] or condition.observedGeneration
  end
  for _, condition in ipairs(new.conditions or {}) do
    condition.observedGeneration = condition.observedGeneration or known[condition.type]
  end
end


local function prepare_status(new, old)
  new.spec = old.spec
  new.metadata.deletionTimestamp = nil
  new.metadata.ownerReferences = old.metadata.ownerReferences
  new.status.qosClass = new.status.qosClass or old.status.qosClass
  keep_observed(new.status, old.status)
end


-- Limits are only checked for new pods and resizes: other writes do not change the resources of containers.
local function admit(new, old, ctx)
  if not old or ctx.request.subresource == "resize" and not old.metadata.deletionTimestamp then
    return limitranger.check(new, ctx)
  end
end


-- A pod that has no node, or has ended, is deleted at once.
local function graceful(object, options)
  local seconds = options.gracePeriodSeconds or object.spec.terminationGracePeriodSeconds or 0
  if not object.spec.nodeName or ENDED[object.status.phase] then
    return 0
  end
  return seconds < 0 and 1 or seconds
end


local FIELDS = {
  "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName", "spec.hostNetwork",
  "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName",
}


local function fields(object)
  local spec, status = object.spec, object.status
  return {
    ["spec.nodeName"] = spec.nodeName or "",
    ["spec.restartPolicy"] = spec.restartPolicy or "",
    ["spec.schedulerName"] = spec.schedulerName or "",
    ["spec.serviceAccountName"] = spec.serviceAccountName or "",
    ["spec.hostNetwork"] = tostring(spec.hostNetwork or false),
    ["status.phase"] = status.phase or "",
    ["status.podIP"] = status.podIP or "",
    ["status.podIPs"] = status.podIP or "",
    ["status.nominatedNodeName"] = status.nominatedNodeName or "",
  }
end


return {
  defaults = defaults.pod,
  prepare_create = prepare_create,
  prepare_update = prepare_update,
  prepare_status = prepare_status,
  admit = admit,
  warnings = warnings.pod,
  validate = validate,
  validate_update = update.validate,
  validate_status = update.validate_status,
  graceful = graceful,
  field_names = check.set(FIELDS),
  fields = fields,
  subresources = {
    binding = parts.binding, eviction = eviction, ephemeralcontainers = parts.ephemeralcontainers,
    resize = parts.resize,
    attach = connect.attach, exec = connect.exec, portforward = connect.portforward, proxy = connect.proxy,
  },
  cells = cells,
}
