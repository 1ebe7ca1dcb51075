-- attack: a call that waits, from inside the comparator of table.sort.
-- expect: error /cannot wait/
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  uses = { Map },
  reconcile = function(_, ctx)
    table.sort({ 3, 1, 2 }, function() return ctx.get(Map, "precious") ~= nil end)
  end,
}
