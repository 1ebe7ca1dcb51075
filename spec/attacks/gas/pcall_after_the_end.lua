-- attack: pcall is to catch the end of the time, nested, with an error of its own.
-- expect: limit cpu
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    while true do
      pcall(function()
        pcall(function() while true do end end)
        error { "mine" }
      end)
    end
  end,
}
