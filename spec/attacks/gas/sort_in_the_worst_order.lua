-- attack: a list in the order that quick sort likes least, with a comparator that lies.
-- expect: limit cpu
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local list = {}
    for i = 1, 100000 do list[i] = i % 2 == 0 and i or -i end
    while true do
      pcall(table.sort, list, function() return true end)
      pcall(table.sort, list, function(a, b) return (a * 7919) % 13 < (b * 104729) % 17 end)
    end
  end,
}
