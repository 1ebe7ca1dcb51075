--- Sets the fields that a new pod gets from its classes: its priority, and the needs of its runtime.
---
--- Rules: kubernetes/plugin/pkg/admission/{priority,runtimeclass}/admission.go.
local classes = require "cluster.apiserver.resources.default_class"
local host = require "cluster.host"
local status = require "cluster.apiserver.status"

local M = {}

local NONE = {}
local PRIORITIES, RUNTIMES = "priorityclasses.scheduling.k8s.io", "runtimeclasses.node.k8s.io"
local PREEMPTION = "PreemptLowerPriority"


--- The name of a pod in messages: its generateName, if the server made its name of that.
function M.shown_name(meta)
  local prefix, name = meta.generateName, meta.name
  if prefix and (not name or #name == #prefix + 5 and name:sub(1, #prefix) == prefix) then
    return prefix
  end
  return name or "Unknown"
end


local function refuse(pod, ctx, why)
  return status.forbidden(ctx.request.res, M.shown_name(pod.metadata), why)
end


-- The class of pods that name none, or nil: of several the one with the lowest value.
local function default_priority(ctx)
  local found
  for _, class in ipairs(classes.all(ctx, PRIORITIES)) do
    if class.globalDefault and (not found or class.value < found.value) then
      found = class
    end
  end
  return found
end


local function mismatch(pod, ctx, what, computed)
  return refuse(pod, ctx, ("%s must not be provided in pod spec; priority admission controller computed %s from the "
    .. "given PriorityClass name"):format(what, computed))
end


--- Sets priority and preemption policy of a new pod. @return table|nil failure
function M.set_priority(pod, ctx)
  local spec = pod.spec
  local name = spec.priorityClassName
  local class = name and name ~= "" and classes.get(ctx, PRIORITIES, name)
  if not name or name == "" then
    class = default_priority(ctx)
  elseif not class then
    return refuse(pod, ctx, "no PriorityClass with name " .. name .. " was found")
  end
  local priority, policy = class and class.value or 0, class and class.preemptionPolicy or PREEMPTION
  if spec.priority and spec.priority ~= priority then
    return mismatch(pod, ctx, ("the integer value of priority (%d)"):format(spec.priority), tostring(priority))
  elseif spec.preemptionPolicy and spec.preemptionPolicy ~= policy then
    return mismatch(pod, ctx, ("the string value of PreemptionPolicy (%s)"):format(spec.preemptionPolicy), policy)
  end
  spec.priorityClassName = class and class.metadata.name
  spec.priority, spec.preemptionPolicy = priority, policy
end


local function set_overhead(pod, overhead, ctx)
  local spec = pod.spec
  if not overhead then
    return spec.overhead
      and refuse(pod, ctx, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead") or nil
  elseif spec.overhead and not host.json.equal(spec.overhead, overhead.podFixed or NONE) then
    return refuse(pod, ctx, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
  end
  spec.overhead = overhead.podFixed
end


local function set_selector(pod, selector, ctx)
  local spec = pod.spec
  for key, value in pairs(selector or NONE) do
    local own = (spec.nodeSelector or NONE)[key]
    if own and own ~= value then
      return refuse(pod, ctx, ("conflict: runtimeClass.scheduling.nodeSelector[%s] = %s; "
        .. "pod.spec.nodeSelector[%s] = %s"):format(key, value, key, own))
    end
    spec.nodeSelector = spec.nodeSelector or {}
    spec.nodeSelector[key] = value
  end
end


local function has(list, item)
  for _, other in ipairs(list) do
    if host.json.equal(other, item) then
      return true
    end
  end
  return false
end


--- Sets what the runtime class of a new pod says: overhead, node selector, tolerations. @return table|nil failure
function M.set_runtime(pod, ctx)
  local spec, class = pod.spec, nil
  if (spec.runtimeClassName or "") ~= "" then
    class = classes.get(ctx, RUNTIMES, spec.runtimeClassName)
    if not class then
      return refuse(pod, ctx, ('pod rejected: RuntimeClass "%s" not found'):format(spec.runtimeClassName))
    end
  end
  local scheduling = class and class.scheduling or NONE
  local failure = set_overhead(pod, class and class.overhead, ctx) or set_selector(pod, scheduling.nodeSelector, ctx)
  for _, toleration in ipairs(not failure and scheduling.tolerations or NONE) do
    spec.tolerations = spec.tolerations or host.json.array {}
    if not has(spec.tolerations, toleration) then
      spec.tolerations[#spec.tolerations + 1] = toleration
    end
  end
  return failure
end


return M
