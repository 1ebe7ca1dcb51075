--- The metrics that scripts set by ctx.metric, for their tests.
local virtual = require "cluster.world"

local M = {}

local ESCAPES = { ["\\"] = "\\\\", ['"'] = '\\"', ["\n"] = "\\n" }


-- Does the text between the braces have all these labels?
local function has_labels(text, labels)
  for name, value in pairs(labels) do
    local label = ('%s="%s"'):format(name, tostring(value):gsub('[\\"\n]', ESCAPES))
    if not ("," .. text .. ","):find("," .. label .. ",", 1, true) then
      return false
    end
  end
  return true
end


function M.add(world, guard)
  --- The value of a metric of the script; of a histogram how many values it has. The first series that has all these
  --- labels; nil: there is none.
  --- @param name string as in `metrics`
  --- @param labels table|nil
  function world.metric(name, labels)
    guard()
    for line in virtual.metrics():gmatch "[^\n]+" do
      local series, text, value = line:match "^moonloop_custom_([%w_]+){(.*)} (%S+)$"
      if (series == name or series == name .. "_count") and has_labels(text, labels or {}) then
        return tonumber(value)
      end
    end
  end
end


return M
