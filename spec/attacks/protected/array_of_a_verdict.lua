-- attack: what ctx.invalid gave is marked as a list, changed, and returned.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    local verdict = ctx.invalid("spec.x", "why")
    pcall(moonloop.array, verdict)
    pcall(setmetatable, verdict, nil)
    pcall(rawset, verdict, "outcome", {})
    pcall(rawset, verdict, "message", 5)
    pcall(rawset, verdict, "field", function() end)
    return verdict
  end,
}
