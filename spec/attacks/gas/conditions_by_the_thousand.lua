-- attack: a status with twenty thousand conditions, which the host merges by type.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local conditions = {}
    for i = 1, 20000 do conditions[i] = { type = "C" .. i, status = "True" } end
    return { status = { conditions = conditions } }
  end,
}
