-- attack: select from the end of many arguments, in a loop that is quadratic.
-- expect: limit cpu
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local list = {}
    for i = 1, 100000 do list[i] = i end
    local function sum(...)
      local total = 0
      for i = 1, select("#", ...) do total = total + (select(i, ...)) end
      return total
    end
    while true do pcall(sum, table.unpack(list)) end
  end,
}
