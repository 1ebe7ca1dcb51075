--- Compares an object with the expected fields, and describes the differences.
local busted = require "busted" -- a failure, not an error, in what it reports
local host = require "cluster.host"
local waiting = require "cluster.testing.waiting"

local M = {}


local function sorted_keys(value)
  local keys = {}
  for key in pairs(value) do
    keys[#keys + 1] = key
  end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  return keys
end


local function value_text(value)
  if type(value) == "string" then
    return host.escape(("%q"):format(value):gsub("\\\n", "\\n"))
  elseif type(value) ~= "table" then
    return tostring(value)
  end
  local parts = {}
  for _, key in ipairs(sorted_keys(value)) do
    local text = value_text(value[key])
    parts[#parts + 1] = math.type(key) == "integer" and text or ("%s = %s"):format(host.escape(tostring(key)), text)
  end
  return "{ " .. table.concat(parts, ", ") .. " }"
end


-- Where `got` is not as `wanted`: maps may have more fields, lists may not have more items.
local function compare(wanted, got, path, lines)
  if type(wanted) ~= "table" or type(got) ~= "table" then
    if wanted ~= got then
      lines[#lines + 1] = ("  %s\n    - %s\n    + %s"):format(path, value_text(wanted), value_text(got))
    end
    return
  end
  for _, key in ipairs(sorted_keys(wanted)) do
    local step = math.type(key) == "integer" and ("[%d]"):format(key)
      or (path == "" and "" or ".") .. host.escape(tostring(key))
    compare(wanted[key], got[key], path .. step, lines)
  end
  for index = #wanted + 1, #wanted > 0 and #got or 0 do
    lines[#lines + 1] = ("  %s[%d]\n    + %s"):format(path, index, value_text(got[index]))
  end
end


--- The differences, a few lines each: "-" what was wanted, "+" what is there; nil when there are none.
function M.difference(wanted, got)
  local lines = {}
  compare(wanted, got, "", lines)
  return lines[1] and table.concat(lines, "\n") or nil
end


function M.add(world)
  --- Fails unless the object is there and has these fields; shows how it differs. `false`: it must not be there.
  function world.expect(kind, name, wanted, namespace)
    local object = world.get(kind, name, namespace)
    local what = ("%s %s"):format(kind.kind, name)
    if not wanted then
      return object == nil or busted.fail(what .. " should not be there, and is", 0)
    elseif not object then
      busted.fail(what .. " should be there, and is not" .. waiting.text(world.now()), 0)
    end
    local difference = M.difference(wanted, object)
    if difference then
      busted.fail(("%s is not as expected (- wanted, + there):\n%s%s"):format(what, difference,
        waiting.text(world.now())), 0)
    end
  end
end


return M
