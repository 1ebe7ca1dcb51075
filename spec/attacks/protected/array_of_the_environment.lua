-- attack: moonloop.array takes the guard off the environment.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    if pcall(moonloop.array, _ENV) then error "ESCAPED: the environment was marked" end
    local name = "nothing_of_that_name"
    if pcall(function() return _ENV[name] end) then error "ESCAPED: no guard" end
  end,
}
