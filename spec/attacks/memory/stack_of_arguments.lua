-- attack: functions with as many arguments and results as the stack takes.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local list = {}
    for i = 1, 999999 do list[i] = i end
    local function all(...) return ... end
    pcall(function() return { all(table.unpack(list)) } end)
    pcall(function() return select("#", all(table.unpack(list, 1, 200000))) end)
    pcall(string.char, table.unpack(list, 1, 200))
    pcall(math.max, table.unpack(list, 1, 200000))
  end,
}
