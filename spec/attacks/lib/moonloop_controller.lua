-- attack: moonloop.controller gets each value there is in each place.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local function declared() return { name = "attack-other", reconciles = Thing, reconcile = function() end } end
    hostile.throw(moonloop.controller)
    for _, field in ipairs { "name", "reconciles", "when", "owns", "watches", "uses", "reconcile", "max_concurrent", "formerly",
      "rollout" } do
      hostile.throw_one(function(value)
        local one = declared()
        one[field] = value
        return moonloop.controller(one)
      end)
      hostile.throw_one(function(value)
        local one = declared()
        one[field] = { value, value }
        return moonloop.controller(one)
      end)
    end
    hostile.throw_one(function(value)
      local one = declared()
      one.owns = { { kind = value, adopt = value } }
      return moonloop.controller(one)
    end)
    hostile.throw_one(function(value)
      local one = declared()
      one[value] = 1
      return moonloop.controller(one)
    end)
  end,
}
