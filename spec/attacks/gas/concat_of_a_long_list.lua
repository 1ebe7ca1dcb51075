-- attack: table.concat of many, with a long separator.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local list = {}
    for i = 1, 100000 do list[i] = "x" end
    while true do pcall(table.concat, list, ("s"):rep(10)) end
  end,
}
