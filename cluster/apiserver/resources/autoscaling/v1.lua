--- HorizontalPodAutoscalers of autoscaling/v1: a share of the cpu has a field; what else version 2 knows stands in
--- annotations, as JSON.
---
--- Rules: kubernetes/pkg/apis/autoscaling/v1/{conversion,defaults}.go, pkg/apis/autoscaling/{annotations,helpers}.go.
local check = require "cluster.apiserver.resources.check"
local host = require "cluster.host"
local newer = require "cluster.apiserver.resources.autoscaling.autoscalers"

local null, array = host.json.null, host.json.array

local PREFIX = "autoscaling.alpha.kubernetes.io/"
local METRICS, STATUSES, CONDITIONS, BEHAVIOR = PREFIX .. "metrics", PREFIX .. "current-metrics",
  PREFIX .. "conditions", PREFIX .. "behavior"
local CPU_SHARE = 80

-- type → { where it stands, { field of version 1, path in version 2 } … } in the order of Go's fields. "?" and "=":
-- "target" in a spec, "current" in a status.
local FORMS = {
  Object = { "object", { "target", "describedObject" }, { "metricName", "metric.name" }, { "?Value", "=.value", "0" },
    { "selector", "metric.selector" }, { "averageValue", "=.averageValue" } },
  Pods = { "pods", { "metricName", "metric.name" }, { "?AverageValue", "=.averageValue", "0" },
    { "selector", "metric.selector" } },
  Resource = { "resource", { "name", "name" }, { "?AverageUtilization", "=.averageUtilization" },
    { "?AverageValue", "=.averageValue" } },
  ContainerResource = { "containerResource", { "name", "name" }, { "?AverageUtilization", "=.averageUtilization" },
    { "?AverageValue", "=.averageValue" }, { "container", "container" } },
  External = { "external", { "metricName", "metric.name" }, { "metricSelector", "metric.selector" },
    { "?Value", "=.value" }, { "?AverageValue", "=.averageValue" } },
}


local function at(object, path)
  for key in path:gmatch "[^.]+" do
    object = object and object[key]
  end
  return object
end


local function put(object, path, value)
  local before, last = path:match "^(.-)%.?([^.]+)$"
  for key in before:gmatch "[^.]+" do
    object[key] = object[key] or {}
    object = object[key]
  end
  object[last] = value
end


-- A JSON object with its members in order; those without a value are left out.
local function ordered(members)
  local parts = {}
  for _, member in ipairs(members) do
    if member[2] ~= nil then
      parts[#parts + 1] = host.json.encode(member[1]) .. ":" .. (member[3] and member[2] or host.json.encode(member[2]))
    end
  end
  return "{" .. table.concat(parts, ",") .. "}"
end


local function reference(value)
  return ordered { { "kind", value.kind }, { "name", value.name }, { "apiVersion", value.apiVersion } }
end


-- A metric of version 2 as the text of one of version 1. `what`: "target" or "current".
local function older_metric(metric, what)
  local form = FORMS[metric.type]
  local source = form and metric[form[1]]
  if not source then
    return ordered { { "type", metric.type } }
  end
  local members = {}
  for i = 2, #form do
    local name, path, zero = form[i][1]:gsub("?", what), form[i][2]:gsub("=", what), form[i][3]
    local value = at(source, path)
    if path == "describedObject" then
      members[i - 1] = { name, reference(value), true }
    else
      members[i - 1] = { name, value == nil and zero or value }
    end
  end
  return ordered { { "type", metric.type }, { form[1], ordered(members), true } }
end


local function target_type(target)
  return target.averageUtilization and "Utilization" or target.value and "Value" or "AverageValue"
end


-- The other way round.
local function newer_metric(metric, what)
  local form = FORMS[metric.type]
  local source = form and metric[form[1]]
  if type(source) ~= "table" then
    return { type = metric.type or "" }
  end
  local made = { [what] = {} }
  for i = 2, #form do
    local name, path = form[i][1]:gsub("?", what), form[i][2]:gsub("=", what)
    if source[name] ~= nil then
      put(made, path, source[name])
    end
  end
  if metric.type == "Object" and made[what].averageValue and made[what].value == "0" then
    made[what].value = nil
  end
  if what == "target" then
    made.target.type = target_type(made.target)
  end
  return { type = metric.type, [form[1]] = made }
end


-- Names as Go's internal types have them, and back.
local function renamed(value, rename)
  if type(value) ~= "table" then
    return value
  elseif host.json.is_array(value) then
    local list = array {}
    for i, item in ipairs(value) do
      list[i] = renamed(item, rename)
    end
    return list
  end
  local map = {}
  for key, inner in pairs(value) do
    if inner ~= null then
      map[rename(key)] = renamed(inner, rename)
    end
  end
  return map
end


local function upper(name)
  return (name:gsub("^%l", string.upper))
end


local function lower(name)
  return (name:gsub("^%u", string.lower))
end


local function is_cpu_share(metric)
  return metric.type == "Resource" and metric.resource and metric.resource.name == "cpu"
end


local function annotate(object, name, parts)
  if #parts > 0 then
    object.metadata.annotations = object.metadata.annotations or {}
    object.metadata.annotations[name] = "[" .. table.concat(parts, ",") .. "]"
  end
end


-- Makes an object of version 2 one of version 1.
local function load(object)
  local spec, status = object.spec, object.status or {}
  local others, currents, conditions = {}, {}, {}
  for _, metric in ipairs(check.list(spec.metrics)) do
    if is_cpu_share(metric) and metric.resource.target.averageUtilization then
      spec.targetCPUUtilizationPercentage = metric.resource.target.averageUtilization
    else
      others[#others + 1] = older_metric(metric, "target")
    end
  end
  for i, metric in ipairs(check.list(status.currentMetrics)) do
    currents[i] = older_metric(metric, "current")
    if is_cpu_share(metric) then
      status.currentCPUUtilizationPercentage = metric.resource.current.averageUtilization
    end
  end
  for i, condition in ipairs(check.list(status.conditions)) do
    conditions[i] = ordered {
      { "type", condition.type }, { "status", condition.status },
      { "lastTransitionTime", condition.lastTransitionTime }, { "reason", condition.reason },
      { "message", condition.message },
    }
  end
  annotate(object, METRICS, others)
  annotate(object, STATUSES, currents)
  annotate(object, CONDITIONS, conditions)
  if spec.behavior then
    object.metadata.annotations = object.metadata.annotations or {}
    object.metadata.annotations[BEHAVIOR] = host.json.encode(renamed(spec.behavior, upper))
  end
  spec.metrics, spec.behavior, status.currentMetrics, status.conditions = nil, nil, nil, nil
  status.currentReplicas = status.currentReplicas or 0
end


-- Takes an annotation out. @return any the JSON value in it, or nil
local function take(annotations, name)
  local text = annotations[name]
  annotations[name] = nil
  local value = text and host.json.decode(text)
  return type(value) == "table" and value or nil
end


local function metrics_of(spec, annotations)
  local metrics = array {}
  for _, metric in ipairs(take(annotations, METRICS) or {}) do
    metrics[#metrics + 1] = newer_metric(metric, "target")
  end
  local share = spec.targetCPUUtilizationPercentage
  if share or #metrics == 0 then
    metrics[#metrics + 1] = { type = "Resource",
      resource = { name = "cpu", target = { type = "Utilization", averageUtilization = share or CPU_SHARE } } }
  end
  return metrics
end


-- Makes an object of version 1 one of version 2.
local function save(object)
  local spec, status, annotations = object.spec, object.status or {}, object.metadata.annotations or {}
  spec.metrics = metrics_of(spec, annotations)
  local behavior = take(annotations, BEHAVIOR)
  spec.behavior = behavior and next(behavior) and renamed(behavior, lower) or nil
  spec.targetCPUUtilizationPercentage = nil
  local currents, conditions = take(annotations, STATUSES), take(annotations, CONDITIONS)
  status.currentMetrics = currents and array {} or null
  for i, metric in ipairs(currents or {}) do
    status.currentMetrics[i] = newer_metric(metric, "current")
  end
  status.conditions = conditions and array(conditions)
  status.currentCPUUtilizationPercentage = nil
  status.currentReplicas = status.currentReplicas ~= 0 and status.currentReplicas or nil
  object.metadata.annotations = next(annotations) and annotations or nil
  object.status = status
end


local function as_newer(object)
  if not object then
    return nil
  end
  local copy = host.json.copy(object)
  save(copy)
  newer.defaults(copy)
  return copy
end


local function prepare_create(object)
  object.status = { currentReplicas = 0, desiredReplicas = 0 }
end


-- The status is that of before, and so are the annotations that tell of it.
local function prepare_update(new, old)
  new.status = old.status
  local before = old.metadata.annotations or {}
  for _, name in ipairs { STATUSES, CONDITIONS } do
    if before[name] then
      new.metadata.annotations = new.metadata.annotations or {}
    end
    if new.metadata.annotations then
      new.metadata.annotations[name] = before[name]
    end
  end
end


return {
  spec_changed = false,
  defaults = function(object)
    object.spec.minReplicas = object.spec.minReplicas or 1
  end,
  prepare_create = prepare_create,
  prepare_update = prepare_update,
  prepare_status = newer.prepare_status,
  validate = function(object)
    return newer.validate(as_newer(object))
  end,
  validate_update = function(new, old)
    return newer.validate_update(as_newer(new), as_newer(old))
  end,
  validate_status = newer.validate_status,
  cells = function(object, now)
    return newer.cells(as_newer(object), now)
  end,
  convert = { load = load, save = save },
}
