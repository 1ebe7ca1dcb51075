-- attack: tostring gives tables, which the library uses as keys of kinds.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
tostring = function() return setmetatable({}, { __concat = function() return {} end }) end

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  owns = { moonloop.kind("attacks.test/v1", "Part") },
  reconcile = function()
    return
  end,
}
