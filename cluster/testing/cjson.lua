--- The module that `require "cjson"` returns to a test: the names that a script has, by the codec of the embedded
--- server, so that its null is moonloop.null. The distribution's lua-cjson has a null of its own.
local host = require "cluster.host"

local M = {}

M.encode, M.array, M.null = host.json.encode, host.json.array, host.json.null


--- The value of a JSON text. Raises for other texts.
function M.decode(text)
  local value, why = host.json.decode(text)
  if value == nil then
    error("cjson.decode: " .. host.escape(why), 2)
  end
  return value
end


return M
