-- attack: a controller has the name under which the host itself speaks, so that its log lines are the host's.
-- expect: refused
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  reconciles = Thing,
  name = "host",
  reconcile = function(_, ctx)
    ctx.log "FORGED the disk is full"
  end,
}
