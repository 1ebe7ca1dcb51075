-- attack: moonloop.kind, watch and controller get each value there is while the file loads.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
hostile.throw(moonloop.kind)
hostile.throw(moonloop.kind, "v1")
hostile.throw(moonloop.watch, Thing)
hostile.throw(moonloop.controller)

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    return
  end,
}
