-- attack: a watch function that names ten thousand objects for each change.
-- expect: held
-- touches: 6
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local names = {}
for i = 1, 10000 do names[i] = "default/name-" .. i end
local Part = moonloop.kind("attacks.test/v1", "Part")

return moonloop.controller {
  name = "attack",
  reconciles = Part,
  watches = { moonloop.watch(Thing, function() return names end) },
  reconcile = function()
    return
  end,
}
