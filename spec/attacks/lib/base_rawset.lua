-- attack: rawset gets each value there is in each place.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    for i = 1, #hostile.values do
      local value = hostile.values[i]
      hostile.throw_one(function(key) rawset({}, key, value) end)
      hostile.throw_one(function(target)
        if target ~= string and target ~= math and target ~= _ENV and target ~= moonloop then rawset(target, value, value) end
      end)
    end
  end,
}
