-- attack: sixty objects whose statuses have nearly three megabytes each.
-- expect: held
-- objects: 60
-- for: 1s
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(thing)
    return { status = { name = thing.metadata.name, text = ("s"):rep(1000000), more = ("t"):rep(1000000) } }
  end,
}
