-- Checks three fields of a controller for moonloop.controller: the metrics that the script sets with ctx.metric, the
-- origins that it may ask with ctx.http, and how the next version takes over. metric.c, http.c and declare.c of
-- host/script read what this makes of them, and check again.
local _, host = ...
local names = host.require "moonloop.names"
local fields = host.require "moonloop.fields"

local M = {}

local METRICS_MAX, LABELS_MAX, BUCKETS_MAX, ORIGINS_MAX = 64, 8, 32, 16
local NAME_MAX, HELP_MAX = 100, 200
local RESERVED = "le quantile controller"

-- Prometheus' own default buckets, for what takes seconds.
local BUCKETS = { 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10 }


local function is_name(value)
  return type(value) == "string" and #value <= NAME_MAX and value:find "^[%a_][%w_]*$" ~= nil
end


-- A copy of a list; nil and the problem when it is none.
local function list_of(value, most)
  if value == nil then
    return {}
  elseif type(value) ~= "table" or host.is_kind(value) then
    return nil, "expected a list, got a " .. type(value)
  end
  local copy = host.copy(value)
  local count = #copy
  for key in pairs(copy) do
    if math.type(key) ~= "integer" or key < 1 or key > count then
      return nil, ("expected a list, found the key '%s'"):format(names.text(key))
    end
  end
  if count > most then
    return nil, ("%d entries; at most %d"):format(count, most)
  end
  return copy
end


local function check_labels(labels)
  local list, problem = list_of(labels, LABELS_MAX)
  local seen = {}
  for _, label in ipairs(list or {}) do
    if not is_name(label) or label:sub(1, 2) == "__" then
      return nil, ("labels: '%s' is no name of a label: letters, digits and '_'"):format(names.text(label))
    elseif names.is_known(label, RESERVED) then
      return nil, ("labels: the label '%s' is the host's, or Prometheus' own; name it otherwise"):format(label)
    elseif seen[label] then
      return nil, ("labels: '%s' is there twice"):format(label)
    end
    seen[label] = true
  end
  return list, problem and "labels: " .. problem
end


local function check_buckets(buckets, metric_type)
  if metric_type ~= "histogram" then
    return {}, buckets ~= nil and "buckets: only a histogram has them" or nil
  end
  local list, problem = list_of(buckets or BUCKETS, BUCKETS_MAX)
  if list and #list == 0 then
    problem = "expected upper bounds, as in { 0.1, 1, 10 }"
  end
  for index, bound in ipairs(list or {}) do
    if type(bound) ~= "number" or bound ~= bound or bound == math.huge or bound == -math.huge then
      problem = "expected numbers"
    elseif index > 1 and type(list[index - 1]) == "number" and bound <= list[index - 1] then
      problem = "each bound has to be larger than the one before"
    end
  end
  return list, problem and "buckets: " .. problem
end


local function check_metric(declaration)
  if type(declaration) ~= "table" then
    return nil, 'expected a table, as in { type = "gauge", help = "…" }'
  end
  local metric = host.copy(declaration)
  local problem = names.unknown(metric, fields.metric)
  if not problem and not (type(metric.type) == "string" and names.is_known(metric.type, fields.metric_type)) then
    problem = ('type: expected "counter", "gauge" or "histogram", got %s'):format(names.text(metric.type))
  elseif not problem and (type(metric.help) ~= "string" or metric.help == "" or #metric.help > HELP_MAX
      or metric.help:find "[%c\\]") then
    problem = ("help: expected one line that says what it is, at most %d bytes, without '\\'"):format(HELP_MAX)
  end
  if not problem and metric.sum ~= nil and type(metric.sum) ~= "boolean" then
    problem = "sum: expected true or false, got a " .. type(metric.sum)
  elseif not problem and metric.sum and metric.type ~= "gauge" then
    problem = ("sum: only a gauge adds up over objects; a %s counts for all of them by itself"):format(metric.type)
  end
  local labels, buckets
  if not problem then
    labels, problem = check_labels(metric.labels)
  end
  if not problem then
    buckets, problem = check_buckets(metric.buckets, metric.type)
  end
  return {
    type = metric.type, help = metric.help, sum = metric.sum or false, labels = labels, buckets = buckets,
  }, problem
end


--- The declared metrics as a list in the order of their names, each { name, type, help, sum, labels, buckets }.
---@return table? metrics nil when there is a problem
---@return string? problem
function M.metrics(declaration)
  if declaration == nil then
    return {}
  elseif type(declaration) ~= "table" or host.is_kind(declaration) then
    return nil, "metrics: expected a table of metrics by their names, got a " .. type(declaration)
  end
  local list, by_name = {}, {}
  for name, metric in pairs(host.copy(declaration)) do
    if not is_name(name) then
      return nil, ("metrics: '%s' is no name of a metric: letters, digits and '_'"):format(names.text(name))
    end
    local checked, problem = check_metric(metric)
    if problem then
      return nil, ("metrics: %s: %s"):format(name, problem)
    end
    checked.name, by_name[name] = name, checked
    list[#list + 1] = checked
  end
  if #list > METRICS_MAX then
    return nil, ("metrics: %d metrics; at most %d"):format(#list, METRICS_MAX)
  end
  for _, metric in ipairs(list) do
    local base = metric.name:match "^(.*)_bucket$" or metric.name:match "^(.*)_sum$" or metric.name:match "^(.*)_count$"
    if base and by_name[base] and by_name[base].type == "histogram" then
      return nil, ("metrics: %s: the histogram '%s' has series of this name"):format(metric.name, base)
    end
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end


-- Modes, and the largest value of each limit.
local ROLLOUT_MODES = { guarded = true, canary = true, plan = true, immediate = true }
local ROLLOUT_MAX = {
  { "max_deletes", 1000000 }, { "max_deletes_percent", 100 }, { "max_failures_percent", 100 },
  { "settle_seconds", 86400 },
}


--- The declared rollout: a copy, or {}.
---@return table? rollout nil when there is a problem
---@return string? problem
function M.rollout(declaration)
  if declaration == nil then
    return {}
  elseif type(declaration) == "string" then
    declaration = { mode = declaration }
  elseif type(declaration) ~= "table" or host.is_kind(declaration) then
    return nil, ("rollout: expected a mode, or a table as { max_deletes = 10 }, got a %s"):format(type(declaration))
  end
  local rollout = host.copy(declaration)
  local problem = names.unknown(rollout, fields.rollout)
  if problem then
    return nil, "rollout: " .. problem
  end
  local mode = rollout.mode
  if mode ~= nil and not ROLLOUT_MODES[mode] then
    return nil, ('rollout: mode: expected "guarded", "canary", "plan" or "immediate", got %s'):format(
      type(mode) == "string" and ("'%s'"):format(names.text(mode)) or "a " .. type(mode))
  end
  for _, limit in ipairs(ROLLOUT_MAX) do
    local field, most = limit[1], limit[2]
    local value = rollout[field]
    if value ~= nil and (math.type(value) ~= "integer" or value < 0 or value > most) then
      return nil, ("rollout: %s: expected a whole number from 0 to %d"):format(field, most)
    end
  end
  return rollout
end


--- The declared origins, in lower case and without a slash at the end.
---@return string[]? origins nil when there is a problem
---@return string? problem
function M.http(declaration)
  local list, problem = list_of(declaration, ORIGINS_MAX)
  if problem then
    return nil, "http: " .. problem
  end
  for index, origin in ipairs(list) do
    local text = type(origin) == "string" and origin:lower():gsub("/$", "") or ""
    local host_part = text:match "^https?://([^/?#@%s]+)$"
    if not host_part or host_part:gsub("^%*%.", ""):find("*", 1, true) then
      return nil, ('http[%d]: expected an origin, as in "https://billing.example.com", got %s'):format(index,
        type(origin) == "string" and ("'%s'"):format(names.text(origin)) or "a " .. type(origin))
    end
    list[index] = text
  end
  return list
end


return M
