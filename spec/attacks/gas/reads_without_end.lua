-- attack: slow reads from the cache, until the limit of reads.
-- expect: held
-- objects: 60
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    while true do ctx.list(Thing) end
  end,
}
