-- attack: table.concat with a separator of a hundred thousand bytes.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local list = {}
    for i = 1, 10000 do list[i] = "x" end
    return table.concat(list, ("s"):rep(100000)) and nil
  end,
}
