-- attack: conditions that are every value there is, one after the other, with keys and fields of every kind.
-- expect: held
-- objects: 60
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(thing)
    local number = tonumber(thing.metadata.name:match "%d+")
    local value = hostile.values[number % #hostile.values + 1]
    if number % 3 == 0 then
      return { conditions = value }
    elseif number % 3 == 1 then
      return { conditions = { Ready = value } }
    end
    return { conditions = { Ready = { status = value, reason = value, message = value } } }
  end,
}
