-- attack: a script deletes its own object, and its finalize never ends.
-- expect: limit cpu
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(thing, ctx)
    ctx.delete(thing)
  end,
  finalize = function()
    while true do
      pcall(error)
    end
  end,
}
