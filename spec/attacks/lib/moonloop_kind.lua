-- attack: moonloop.kind gets each value there is in each place.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    hostile.throw(moonloop.kind)
    hostile.throw(moonloop.kind, "v1")
    hostile.throw_one(moonloop.kind, "v1", "Pod")
    for _, field in ipairs { "labels", "fields", "metadata_only" } do
      hostile.throw_one(function(value) return moonloop.kind("v1", "Pod", { [field] = value }) end)
    end
  end,
}
