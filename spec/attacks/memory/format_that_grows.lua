-- attack: string.format of many long texts in one.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local text = ("x"):rep(500000)
    local list = {}
    for i = 1, 100 do list[i] = text end
    pcall(string.format, ("%s"):rep(100), table.unpack(list))
    pcall(string.format, ("%q"):rep(10), table.unpack(list))
    pcall(string.format, ("%99.99f"):rep(2000), table.unpack(list))
  end,
}
