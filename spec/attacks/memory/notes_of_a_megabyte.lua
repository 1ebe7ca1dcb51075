-- attack: Events with notes of a megabyte, as many as the loop lets through.
-- expect: held
-- objects: 40
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    for i = 1, 100 do
      ctx.event("Reason" .. i, ("%d "):format(i) .. ("n"):rep(900000))
    end
  end,
}
