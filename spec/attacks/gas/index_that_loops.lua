-- attack: the function of an index never ends, for any of its objects.
-- expect: limit cpu
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

moonloop.index(Thing, function()
  while true do
    pcall(string.rep, "x", 1000)
  end
end)

return moonloop.controller { name = "attack", reconciles = Thing, reconcile = function() end }
