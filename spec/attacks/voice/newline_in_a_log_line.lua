-- attack: a log line with a newline and a line of the host's behind it.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    ctx.log "hello\n2026-01-01T00:00:00.000Z error host: FORGED the disk is full"
    ctx.log "hello\r2026-01-01T00:00:00.000Z error host: FORGED"
    ctx.log "hello\n\n\nFORGED"
  end,
}
