-- attack: objects that other reconciles read are changed and written by this one.
-- expect: held
-- objects: 20
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")
local seen = {}

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  owns = { Map },
  reconcile = function(thing, ctx)
    seen[#seen + 1] = thing
    seen[#seen + 1] = ctx.ensure { apiVersion = "v1", kind = "ConfigMap", metadata = { name = thing.metadata.name } }
    for _, other in ipairs(seen) do
      other.status = { by = thing.metadata.name }
      pcall(ctx.patch, other, { data = { by = thing.metadata.name } })
      pcall(ctx.delete, other)
      if #seen > 100 then break end
    end
  end,
}
