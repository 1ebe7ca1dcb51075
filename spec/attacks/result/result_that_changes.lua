-- attack: what reconcile returns has fields that are others each time they are asked.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local asked = 0
    local values = { {}, 5, "x", function() end, { a = 1 } }
    return setmetatable({}, { __index = function(_, key)
      asked = asked + 1
      return values[asked % #values + 1]
    end, __pairs = function() return function() end end })
  end,
}
