-- attack: moonloop.array takes the guard off the environment.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    if pcall(moonloop.array, _ENV) then error "ESCAPED: the environment was marked" end
    if pcall(function() return nothing_of_that_name end) then error "ESCAPED: no guard" end -- luacheck: ignore
  end,
}
