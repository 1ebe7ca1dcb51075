-- attack: the host keeps the last failure of each run; many are made and kept.
-- expect: held
-- objects: 20
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local kept = {}

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    for i = 1, 900 do
      local _, err = ctx.get(Thing, "nobody-" .. i)
      kept[#kept + 1] = err
    end
  end,
}
