-- attack: table.sort of texts of a hundred thousand bytes that differ at their end only.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local list = {}
    local begin = ("a"):rep(100000)
    for i = 1, 100 do list[i] = begin .. (i * 7919 % 100) end
    for _ = 1, 100 do table.sort(list, function(a, b) return a > b end) table.sort(list) end
  end,
}
