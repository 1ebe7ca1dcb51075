-- attack: ipairs and pairs find nothing, so that no entry of owns is looked at.
-- expect: refused
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
ipairs = function() return function() end end
pairs = ipairs

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  owns = { 5, "x", {} },
  reconcile = function()
    return
  end,
}
