-- attack: moonloop.names, which the library asks for unknown fields, is replaced.
-- expect: refused /unknown field|require/
local names = require "moonloop.names"
names.unknown = function() end
names.nearest = function() return error end
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  nonsense = true,
  reconcile = function()
    return
  end,
}
