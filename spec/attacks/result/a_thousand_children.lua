-- attack: as many children as there may be, each with a metatable, in a list whose __index never ends.
-- expect: held
-- objects: 4
-- for: 500ms
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")

local function endless()
  while true do end
end

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  owns = { Map },
  reconcile = function(thing)
    local list = setmetatable({}, { __index = endless, __len = endless, __pairs = endless })
    for index = 1, 1000 do
      local name = ("%s-%d"):format(thing.metadata.name, index)
      list[index] = setmetatable({ apiVersion = "v1", kind = "ConfigMap", metadata = { name = name } },
        { __index = endless, __pairs = endless })
    end
    return { children = list }
  end,
}
