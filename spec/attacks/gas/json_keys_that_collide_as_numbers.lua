-- attack: a status with a list in a table of colliding integer keys, which is surveyed and sorted.
-- expect: error /holes|keys|time/
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local t = {}
    for i = 1, 9000 do t[i * 8191] = i end
    return { status = t }
  end,
}
