-- attack: keys and values of a log line's fields with newlines and escapes.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    ctx.log("x", { ["\nFORGED\27[31m"] = "\n2026-01-01T00:00:00.000Z error host: FORGED\27[2J" })
    ctx.log("x", { a = { b = { ["\u{9b}"] = "\u{2028}\u{2029}\u{85}" } } })
  end,
}
