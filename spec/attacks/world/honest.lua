-- attack: none; an honest script passes.
-- expect: ok
local moonloop = require "moonloop"

return moonloop.controller {
  name = "attack",
  reconciles = moonloop.kind("attacks.test/v1", "Thing"),
  reconcile = function(thing)
    return { status = { n = thing.spec.n } }
  end,
}
