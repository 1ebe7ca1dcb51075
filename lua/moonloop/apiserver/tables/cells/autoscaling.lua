--- Cells of the kinds of autoscaling, both of v2 and of v1.
---
--- Each function takes an object and the time (seconds since 1970) and returns the cells in the order of
--- columns/autoscaling.lua. Rules: kubernetes/pkg/printers/internalversion/printers.go (formatHPAMetrics).
local age = require "moonloop.apiserver.tables.age"
local text = require "moonloop.apiserver.tables.text"

local M = {}

local METRICS_SHOWN = 2

-- Where a metric of that type stands, and whether its resource is named.
local TYPES = {
  External = { field = "external" },
  Object = { field = "object" },
  Pods = { field = "pods", average = true },
  Resource = { field = "resource", named = true },
  ContainerResource = { field = "containerResource", named = true },
}


local function percent(value)
  return value and ("%d%%"):format(value)
end


-- What is wanted of a resource: a quantity, or a share of what was asked for.
local function resource_target(target, current)
  if target.averageValue then
    return current and current.averageValue, target.averageValue
  end
  return current and percent(current.averageUtilization), percent(target.averageUtilization) or "<auto>"
end


local function plain_target(kind, target, current)
  if kind.average then
    return current and current.averageValue, target.averageValue
  elseif target.averageValue then
    return current and current.averageValue, target.averageValue .. " (avg)"
  end
  return current and current.value, target.value
end


local function metric_text(spec, status)
  local kind = TYPES[spec.type]
  local wanted = kind and spec[kind.field]
  if not wanted then
    return "<unknown type>"
  end
  local found = status and status[kind.field]
  local pick = kind.named and resource_target or function(...) return plain_target(kind, ...) end
  local current, target = pick(wanted.target, found and found.current)
  return ("%s%s/%s"):format(kind.named and wanted.name .. ": " or "", current or "<unknown>", target or "0")
end


local function metrics(spec, status)
  if spec.targetCPUUtilizationPercentage then
    local current = percent(status.currentCPUUtilizationPercentage) or "<unknown>"
    return ("cpu: %s/%s"):format(current, percent(spec.targetCPUUtilizationPercentage))
  end
  local list = {}
  for i, metric in ipairs(text.list(spec.metrics)) do
    list[i] = metric_text(metric, text.list(status.currentMetrics)[i])
  end
  return text.cut(list, METRICS_SHOWN, "<none>", ", ")
end


function M.HorizontalPodAutoscaler(obj, now)
  local spec, status = obj.spec, obj.status or {}
  return {
    obj.metadata.name, ("%s/%s"):format(spec.scaleTargetRef.kind, spec.scaleTargetRef.name), metrics(spec, status),
    spec.minReplicas and tostring(spec.minReplicas) or "<unset>", spec.maxReplicas, status.currentReplicas or 0,
    age.of(obj, now),
  }
end


return M
