-- attack: what stands for an absent field, guarded, is returned as status, with ctx and the environment.
-- expect: held
-- objects: 6
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local number = 0

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(thing, ctx)
    number = number + 1
    local values = { thing.status, ctx, _ENV, thing, string, moonloop }
    return { status = values[number % 6 + 1] }
  end,
}
