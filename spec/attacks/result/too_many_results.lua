-- attack: reconcile returns two hundred thousand values.
-- expect: error
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local list = {}
    for i = 1, 200000 do list[i] = i end
    return table.unpack(list)
  end,
}
