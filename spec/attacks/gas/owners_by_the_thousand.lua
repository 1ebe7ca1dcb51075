-- attack: an object with twenty thousand owner references.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Part = moonloop.kind("attacks.test/v1", "Part")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  owns = { Part },
  reconcile = function(_, ctx)
    local owners = {}
    for i = 1, 20000 do owners[i] = { apiVersion = "v1", kind = "Pod", name = "o" .. i, uid = "u" .. i } end
    ctx.ensure { apiVersion = "attacks.test/v1", kind = "Part", metadata = { name = "p", ownerReferences = owners } }
  end,
}
