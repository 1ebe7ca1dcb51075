-- attack: a patch that renames, moves, re-owns, or changes uid and resourceVersion.
-- expect: held
-- touches: 1
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  owns = { Map },
  reconcile = function(_, ctx)
    local map = ctx.ensure { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "m" } }
    for _, metadata in ipairs { { name = "precious" }, { namespace = "others" }, { uid = "x" }, { resourceVersion = "1" },
      { ownerReferences = {} }, { finalizers = { "a\nb" } }, { deletionTimestamp = "2020-01-01T00:00:00Z" }, { labels = 5 } } do
      pcall(ctx.patch, map, { metadata = metadata })
    end
    pcall(ctx.patch, map, { kind = "Secret", apiVersion = "v2" })
    pcall(ctx.patch, map, { status = { a = 1 } })
    pcall(ctx.patch, map, {})
    pcall(ctx.patch, { metadata = map.metadata }, { data = {} })
  end,
}
