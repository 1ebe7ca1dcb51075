--- The differences between two transcripts of one scenario.
local host = require "cluster.host"

local M = {}

local null = host.json.null
local FIELDS = { "code", "headers", "body", "events", "exit", "stdout", "stderr" }


local function is_object(value)
  return type(value) == "table" and value ~= null and not host.json.is_array(value)
end


local function step_into(path, key)
  if key:find("[.%[%]/]") then
    return ("%s[%q]"):format(path, key)
  end
  return path .. "." .. key
end


local compare

local function compare_objects(left, right, path, report)
  local keys = {}
  for key in pairs(left) do
    keys[#keys + 1] = key
  end
  for key in pairs(right) do
    keys[#keys + 1] = left[key] == nil and key or nil
  end
  table.sort(keys)
  for _, key in ipairs(keys) do
    compare(left[key], right[key], step_into(path, key), report)
  end
end


function compare(left, right, path, report)
  if is_object(left) and is_object(right) then
    compare_objects(left, right, path, report)
  elseif type(left) == "table" and type(right) == "table" and left ~= null and right ~= null
    and host.json.is_array(left) == host.json.is_array(right) then
    for i = 1, math.max(#left, #right) do
      compare(left[i], right[i], ("%s[%d]"):format(path, i - 1), report)
    end
  elseif left ~= right then
    report(path, left, right)
  end
end


--- Compares two transcripts.
---@return table[] differences each with entry (of the left), field, left and right
function M.transcripts(left, right)
  local found = {}
  for i = 1, math.max(#left, #right) do
    local one, other = left[i] or { source = right[i].source }, right[i] or {}
    for _, field in ipairs(FIELDS) do
      compare(one[field], other[field], field, function(path, a, b)
        found[#found + 1] = { entry = one, number = i, field = path, left = a, right = b }
      end)
    end
  end
  return found
end


return M
