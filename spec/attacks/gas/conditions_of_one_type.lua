-- attack: ten thousand conditions of the same type.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local conditions = {}
    for i = 1, 10000 do conditions[i] = { type = "Ready", status = i % 2 == 0 and "True" or "False" } end
    return { status = { conditions = conditions } }
  end,
}
