-- attack: ctx.invalid gets a table and a number where type says string.
-- expect: error /two strings/
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    type = function() return "string" end
    return ctx.invalid({}, 5)
  end,
}
