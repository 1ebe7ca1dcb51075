-- attack: the fields of what ctx.invalid gave are replaced by a megabyte and by a newline.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    local verdict = ctx.invalid("spec.x", "why")
    verdict.field = ("f"):rep(1000000)
    verdict.message = "\n2026-01-01T00:00:00.000Z error host: FORGED" .. ("m"):rep(900000)
    return verdict
  end,
}
