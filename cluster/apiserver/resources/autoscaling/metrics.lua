--- The metrics of a HorizontalPodAutoscaler: their rules, and their cells.
---
--- Rules: kubernetes/pkg/apis/autoscaling/validation/validation.go (validateMetricSpec),
--- pkg/printers/internalversion/printers.go (formatHPAMetrics).
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local lists = require "cluster.apiserver.resources.resource_lists"
local names = require "cluster.names"
local resource_names = require "cluster.apiserver.resources.resource_names"

local M = {}

local NONE = {}
local TYPES = { "ContainerResource", "External", "Object", "Pods", "Resource" }
-- Where each type stands; the order is that in which they are looked at.
local FIELDS = { Object = "object", External = "external", Pods = "pods", Resource = "resource",
  ContainerResource = "containerResource" }
local ORDER = { "object", "external", "pods", "resource", "containerResource" }
local TARGETS = check.set { "Utilization", "Value", "AverageValue" }
local SHOWN = 2


--- Checks a reference of an autoscaler. @param options table { empty_group =, any_version = booleans }
function M.check_reference(reference, path, options, errors)
  for _, name in ipairs { "kind", "name" } do
    local value, at = reference[name], path .. "." .. name
    if value == "" then
      errors[#errors + 1] = field.required(at, "")
    else
      check.each(errors, at, value, names.path_segment(value))
    end
  end
  local version = reference.apiVersion or ""
  local _, slashes = version:gsub("/", "/")
  if options.any_version then
    return
  elseif version ~= "/" and slashes > 1 then
    errors[#errors + 1] = field.invalid(path .. ".apiVersion", version, "unexpected GroupVersion string: " .. version)
  elseif not options.empty_group and not version:find("^[^/]+/") then
    errors[#errors + 1] = field.invalid(path .. ".apiVersion", version, "apiVersion must specify API group")
  end
end


local function check_target(target, path, errors)
  local kind = target.type
  if kind == "" then
    errors[#errors + 1] = field.required(path .. ".type", "must specify a metric target type")
  end
  if not TARGETS[kind] then
    errors[#errors + 1] = field.invalid(path .. ".type", kind, "must be either Utilization, Value, or AverageValue")
  end
  for _, name in ipairs { "value", "averageValue" } do
    if target[name] and lists.compare(target[name], "0") <= 0 then
      errors[#errors + 1] = field.invalid(path .. "." .. name, target[name], "must be positive")
    end
  end
  if target.averageUtilization and target.averageUtilization < 1 then
    errors[#errors + 1] = field.invalid(path .. ".averageUtilization", target.averageUtilization,
      "must be greater than 0")
  end
end


local function check_metric(metric, path, errors)
  if metric.name == "" then
    errors[#errors + 1] = field.required(path .. ".name", "must specify a metric name")
  else
    check.each(errors, path .. ".name", metric.name, names.path_segment(metric.name))
  end
end


-- A share or an amount, and not both.
local function check_resource(source, path, errors)
  local target = source.target
  check_target(target, path .. ".target", errors)
  if not target.averageUtilization and not target.averageValue then
    errors[#errors + 1] = field.required(path .. ".target.averageUtilization",
      "must set either a target raw value or a target utilization")
  elseif target.averageUtilization and target.averageValue then
    errors[#errors + 1] = field.forbidden(path .. ".target.averageValue",
      "may not set both a target raw value and a target utilization")
  end
end


local RULES = {}

function RULES.object(source, path, options, errors)
  M.check_reference(source.describedObject, path .. ".describedObject", options, errors)
  check_metric(source.metric, path .. ".metric", errors)
  check_target(source.target, path .. ".target", errors)
  if not source.target.value and not source.target.averageValue then
    errors[#errors + 1] = field.required(path .. ".target.averageValue",
      "must set either a target value or averageValue")
  end
end

function RULES.external(source, path, _, errors)
  check_metric(source.metric, path .. ".metric", errors)
  check_target(source.target, path .. ".target", errors)
  if not source.target.value and not source.target.averageValue then
    errors[#errors + 1] = field.required(path .. ".target.averageValue",
      "must set either a target value for metric or a per-pod target")
  elseif source.target.value and source.target.averageValue then
    errors[#errors + 1] = field.forbidden(path .. ".target.value",
      "may not set both a target value for metric and a per-pod target")
  end
end

function RULES.pods(source, path, _, errors)
  check_metric(source.metric, path .. ".metric", errors)
  check_target(source.target, path .. ".target", errors)
  if not source.target.averageValue then
    errors[#errors + 1] = field.required(path .. ".target.averageValue",
      "must specify a positive target averageValue")
  end
end

function RULES.resource(source, path, _, errors)
  if source.name == "" then
    errors[#errors + 1] = field.required(path .. ".name", "must specify a resource name")
  end
  check_resource(source, path, errors)
end

function RULES.containerResource(source, path, _, errors)
  if source.name == "" then
    errors[#errors + 1] = field.required(path .. ".name", "must specify a resource name")
  else
    resource_names.check_container(source.name, path .. ".name", errors)
  end
  if source.container == "" then
    errors[#errors + 1] = field.required(path .. ".container", "must specify a container")
  else
    check.each(errors, path .. ".container", source.container, names.label(source.container))
  end
  check_resource(source, path, errors)
end


local function check_type(metric, path, errors)
  if metric.type == "" then
    errors[#errors + 1] = field.required(path .. ".type", "must specify a metric source type")
  end
  if not FIELDS[metric.type] then
    errors[#errors + 1] = field.not_supported(path .. ".type", metric.type, TYPES)
  end
end


local function check_one(metric, path, options, errors)
  check_type(metric, path, errors)
  local present = {}
  for _, name in ipairs(ORDER) do
    if metric[name] then
      present[#present + 1] = name
      if #present == 1 then
        RULES[name](metric[name], path .. "." .. name, options, errors)
      end
    end
  end
  local expected = FIELDS[metric.type]
  if expected and not metric[expected] then
    errors[#errors + 1] = field.required(path .. "." .. expected,
      "must populate information for the given metric source")
  elseif not expected then
    errors[#errors + 1] = field.not_supported(path .. ".type", metric.type, TYPES)
  end
  table.sort(present)
  for _, name in ipairs(#present ~= 1 and present or NONE) do
    if name ~= expected then
      errors[#errors + 1] = field.forbidden(path .. "." .. name, "must populate the given metric source only")
    end
  end
end


--- The metrics of a spec. @param options table as M.check_reference takes it, for what they describe
function M.validate(spec, options, errors)
  local outside = false
  for i, metric in ipairs(spec.metrics or NONE) do
    check_one(metric, ("spec.metrics[%d]"):format(i - 1), options, errors)
    outside = outside or metric.type == "Object" or metric.type == "External"
  end
  if spec.minReplicas == 0 and not outside then
    errors[#errors + 1] = field.forbidden("spec.metrics",
      "must specify at least one Object or External metric to support scaling to zero replicas")
  end
end


local function shown_resource(source, current)
  local target = source.target
  if target.averageValue then
    return ("%s: %s/%s"):format(source.name, current.averageValue or "<unknown>", target.averageValue)
  end
  local share = current.averageUtilization and current.averageUtilization .. "%" or "<unknown>"
  return ("%s: %s/%s"):format(source.name, share,
    target.averageUtilization and target.averageUtilization .. "%" or "<auto>")
end


local function shown_value(source, current)
  local target = source.target
  if target.averageValue then
    return ("%s/%s (avg)"):format(current.averageValue or "<unknown>", target.averageValue)
  end
  return ("%s/%s"):format(current.value or "<unknown>", target.value or "<nil>")
end


local function metric_text(metric, status)
  local name = FIELDS[metric.type]
  local source = name and metric[name]
  local current = ((status or NONE)[name or ""] or NONE).current or NONE
  if not source then
    return "<unknown type>"
  elseif name == "pods" then
    return ("%s/%s"):format(current.averageValue or "<unknown>", source.target.averageValue)
  elseif name == "resource" or name == "containerResource" then
    return shown_resource(source, current)
  end
  return shown_value(source, current)
end


--- The cell that shows what metrics are and should be.
function M.cell(metrics, statuses)
  if #(metrics or NONE) == 0 then
    return "<none>"
  end
  local parts = {}
  for i, metric in ipairs(metrics) do
    parts[i] = metric_text(metric, check.list(statuses)[i])
  end
  local text = table.concat(parts, ", ", 1, math.min(#parts, SHOWN))
  return #parts > SHOWN and ("%s + %d more..."):format(text, #parts - SHOWN) or text
end


return M
