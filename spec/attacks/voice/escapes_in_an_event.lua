-- attack: an Event whose reason and note have newlines and escapes.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    pcall(ctx.event, "Rea\nson\27[2J", "no\nte\27[2JFORGED")
    pcall(ctx.event, "\xff\xfe", "\xff\xfe")
    pcall(ctx.event, "Reason", "\n2026-01-01T00:00:00.000Z error host: FORGED")
    pcall(ctx.event, "Reason", "note", "Warn\ning")
  end,
}
