-- attack: table.move of a million elements over themselves.
-- expect: limit cpu
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local list = {}
    for i = 1, 100000 do list[i] = i end
    while true do table.move(list, 1, 100000, 2) end
  end,
}
