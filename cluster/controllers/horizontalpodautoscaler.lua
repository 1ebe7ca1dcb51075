--- HorizontalPodAutoscalers: keep the replicas of what they scale within their bounds. There are no metrics here, and
--- the condition ScalingActive says so.
---
--- Rules: kubernetes/pkg/controller/podautoscaler/horizontal.go (reconcileAutoscaler).
local controller = require "cluster.controllers.controller"
local host = require "cluster.host"
local instant = require "cluster.apiserver.instant"

local M = {}

-- Seconds between two looks at what is scaled.
local PERIOD = 15
local NO_METRICS = "the HPA was unable to compute the replica count: nothing here serves metrics"


-- Puts a condition in; one with the same truth keeps the time of its change.
local function set(conditions, kind, truth, reason, message)
  local known
  for _, condition in ipairs(conditions) do
    known = condition.type == kind and condition or known
  end
  if not known then
    known = { type = kind }
    conditions[#conditions + 1] = known
  end
  if known.status ~= truth then
    known.lastTransitionTime = host.timestamp()
  end
  known.status, known.reason, known.message = truth, reason, message
end


-- The path of the scale of what an autoscaler scales, or nil when no such kind is served.
local function scale_path(server, object)
  local target = object.spec.scaleTargetRef
  local version = target.apiVersion or "v1"
  local res = server.registry:of(version ~= "" and version or "v1", target.kind)
  return res and res.subresources and res.subresources.scale
    and server.registry.path(res, object.metadata.namespace, target.name, "scale")
end


-- How many replicas there should be, and why; nil when only metrics could tell.
local function bounded(spec, replicas)
  if replicas == 0 then
    return nil
  elseif replicas > spec.maxReplicas then
    return spec.maxReplicas, "Current number of replicas above Spec.MaxReplicas"
  elseif replicas < spec.minReplicas then
    return spec.minReplicas, "Current number of replicas below Spec.MinReplicas"
  end
end


-- Reports a failure in a condition, and in an Event when its reason is new.
local function fail(api, object, conditions, kind, reason, message)
  local before
  for _, condition in ipairs(conditions) do
    before = condition.type == kind and condition.reason or before
  end
  if before ~= reason then
    api.event(object, "Warning", reason, message)
  end
  set(conditions, kind, "False", reason, message)
end


local function rescale(server, api, object, status, scale, path)
  local spec, conditions = object.spec, status.conditions
  local replicas = scale.spec.replicas or 0
  local wanted, why = bounded(spec, replicas)
  if wanted then
    scale.spec.replicas = wanted
    local code, answer = server:call("PUT", path, scale, { user_agent = "kube-controller-manager" })
    if code >= 300 then
      fail(api, object, conditions, "AbleToScale", "FailedUpdateScale",
        "the HPA controller was unable to update the target scale: " .. tostring(answer.message))
      return
    end
    set(conditions, "AbleToScale", "True", "SucceededRescale",
      ("the HPA controller was able to update the target scale to %d"):format(wanted))
    api.event(object, "Normal", "SuccessfulRescale", ("New size: %d; reason: %s"):format(wanted, why))
    status.lastScaleTime = instant.write(math.floor(host.now()))
  elseif replicas == 0 then
    set(conditions, "ScalingActive", "False", "ScalingDisabled",
      "scaling is disabled since the replica count of the target is zero")
  else
    fail(api, object, conditions, "ScalingActive", "FailedGetResourceMetric", NO_METRICS)
  end
  status.desiredReplicas = wanted or replicas
end


local function reconcile(server, api, object)
  if object.metadata.deletionTimestamp then
    return nil
  end
  local status, target = host.json.copy(object.status or {}), object.spec.scaleTargetRef
  status.conditions = status.conditions or host.json.array {}
  status.currentMetrics = host.json.null
  local path = scale_path(server, object)
  local code, scale
  if path then
    code, scale = server:call("GET", path)
  end
  if code ~= 200 then
    fail(api, object, status.conditions, "AbleToScale", "FailedGetScale",
      "the HPA controller was unable to get the target's current scale: "
        .. (scale and scale.message or ("no matches for kind %q in group %q"):format(target.kind,
          (target.apiVersion or ""):match("^(.-)/") or "")))
    status.desiredReplicas = status.desiredReplicas or 0
  else
    set(status.conditions, "AbleToScale", "True", "SucceededGetScale",
      "the HPA controller was able to get the target's current scale")
    status.currentReplicas = scale.status.replicas
    rescale(server, api, object, status, scale, path)
  end
  api.write_status(object, status)
  return PERIOD
end


--- Starts the controller.
function M.start(server)
  controller.start(server, {
    name = "horizontal-pod-autoscaler", kind = { "autoscaling", "v2", "HorizontalPodAutoscaler" },
    reconcile = function(api, object)
      return reconcile(server, api, object)
    end,
  })
end


return M
