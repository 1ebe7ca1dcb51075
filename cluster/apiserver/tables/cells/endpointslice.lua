--- Cells of an endpoint slice. Rules: kubernetes/pkg/printers/internalversion/printers.go (printEndpointSlice).
local age = require "cluster.apiserver.tables.age"
local text = require "cluster.apiserver.tables.text"

local SHOWN = 3


local function ports(list)
  local names = {}
  for i, port in ipairs(text.list(list)) do
    names[i] = port.port and tostring(port.port) or port.name or "*"
  end
  return text.cut(names, SHOWN, "<unset>")
end


local function addresses(list)
  local found = {}
  for _, endpoint in ipairs(text.list(list)) do
    for _, address in ipairs(endpoint.addresses or {}) do
      found[#found + 1] = address
    end
  end
  return text.cut(found, SHOWN, "<unset>")
end


return function(obj, now)
  return { obj.metadata.name, obj.addressType, ports(obj.ports), addresses(obj.endpoints), age.of(obj, now) }
end
