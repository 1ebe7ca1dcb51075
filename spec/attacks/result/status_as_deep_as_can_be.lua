-- attack: a status of ten thousand levels, and one of as many as are allowed.
-- expect: held
-- objects: 2
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(thing)
    local status = {}
    for _ = 1, thing.metadata.name == "t1" and 10000 or 125 do status = { a = status } end
    return { status = status }
  end,
}
