-- attack: table.insert and table.remove at the front of a long list.
-- expect: limit cpu
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local list = {}
    for i = 1, 200000 do list[i] = i end
    while true do
      table.insert(list, 1, 0)
      table.remove(list, 1)
    end
  end,
}
