-- attack: objects are deleted by tables that the script made up: no uid, that of another, that of nobody.
-- expect: held
-- touches: 1
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  owns = { Map },
  reconcile = function(thing, ctx)
    for _, metadata in ipairs { { name = "precious" }, { name = "precious", uid = "" }, { name = "precious", uid = {} },
      { name = "precious", uid = thing.metadata.uid, resourceVersion = "1" },
      { name = "precious", uid = thing.metadata.uid, resourceVersion = {} }, { name = "../configmaps/precious", uid = "x" } } do
      pcall(ctx.delete, { apiVersion = "v1", kind = "ConfigMap", metadata = metadata })
    end
  end,
}
