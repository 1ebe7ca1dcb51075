--- The query options of `GET …/pods/NAME/log`.
---
--- Rules: kubernetes/pkg/apis/core/validation (ValidatePodLogOptions), pkg/registry/core/pod/strategy.go (LogLocation).
local container_name = require "cluster.kubelet.container_name"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local status = require "cluster.apiserver.status"
local instant = require "cluster.apiserver.instant"

local M = {}

local INTEGERS = { tailLines = 0, limitBytes = 1, sinceSeconds = 1 } -- name → least value
local ORDER = { "tailLines", "limitBytes", "sinceSeconds" }
local AT_LEAST = { [0] = "must be greater than or equal to 0", "must be greater than 0" }


local function first(query, name)
  return query[name] and query[name][1]
end


-- Every text means true, except "", "0" and "false" (upper or lower case).
local function is_true(query, name)
  local text = first(query, name)
  return text ~= nil and text ~= "" and text ~= "0" and text:lower() ~= "false"
end


-- @return table|nil the integers of the query by name, or nil and a status
local function read_integers(query, errors)
  local values = {}
  for _, name in ipairs(ORDER) do
    local text = first(query, name)
    local value = text and text ~= "" and text:match "^[+-]?%d+$" and math.tointeger(tonumber(text))
    if text and text ~= "" and not value then
      return nil, status.bad_request(("strconv.ParseInt: parsing %s: invalid syntax"):format(field.quote(text)))
    end
    if value and value < INTEGERS[name] then
      errors[#errors + 1] = field.invalid(name, value, AT_LEAST[INTEGERS[name]])
    end
    values[name] = value or nil
  end
  return values
end


local function as_in_logs(seconds)
  return (instant.write(seconds):gsub("Z$", ".000000Z"))
end


-- The time that lines must have at least, as logs.lua writes it, or nil.
local function since(query, values)
  local time = first(query, "sinceTime")
  if values.sinceSeconds then
    return as_in_logs(math.floor(host.now() - values.sinceSeconds))
  elseif time and time ~= "" then
    local seconds = instant.read(time)
    if not seconds then
      return nil, status.bad_request(("parsing time %s as \"2006-01-02T15:04:05Z07:00\": cannot parse %s as \"2006\"")
        :format(field.quote(time), field.quote(time)))
    end
    return as_in_logs(seconds)
  end
end


--- Reads the query.
--- @return table|nil as log_answer.send takes it, with container =, previous =; or nil and a status
function M.read(query, pod)
  local errors = {}
  local values, failure = read_integers(query, errors)
  if not values then
    return nil, failure
  end
  if values.sinceSeconds and first(query, "sinceTime") then
    table.insert(errors, field.forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
  end
  if first(query, "stream") then
    table.insert(errors, field.forbidden("stream", "may not be specified"))
  end
  if errors[1] then
    return nil, status.invalid("", "PodLogOptions", pod.metadata.name, errors)
  end
  local from, wrong_time = since(query, values)
  local container, wrong_name = container_name.find(pod, first(query, "container"))
  if wrong_time or not container then
    return nil, wrong_time or wrong_name
  end
  return {
    container = container,
    previous = is_true(query, "previous"),
    follow = is_true(query, "follow"),
    timestamps = is_true(query, "timestamps"),
    tail = values.tailLines,
    limit = values.limitBytes,
    since = from,
  }
end


return M
