-- attack: moonloop.array of what stands for an absent status, so that it can be filled for all objects.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(thing)
    for _, absent in ipairs { thing.status, thing.metadata.annotations } do
      if next(absent) == nil and pcall(moonloop.array, absent) then
        if pcall(function() absent.x = 1 end) then error "ESCAPED: an absent field was filled" end
      end
    end
  end,
}
