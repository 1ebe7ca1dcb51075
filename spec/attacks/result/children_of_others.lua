-- attack: children in a namespace of others, under the names of what is there; the list of them is written over.
-- expect: held
-- objects: 10
-- for: 500ms
-- may: others
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")
local Realm = moonloop.kind("attacks.test/v1", "Realm")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  owns = { Map, Realm },
  reconcile = function(thing, ctx)
    local children = {}
    for _, name in ipairs { "precious", thing.metadata.name } do
      local map = { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name, namespace = "others" }, data = { x = "y" } }
      map.metadata.annotations = { ["moonloop.dev/owner"] = "attack others/x u" }
      children[#children + 1] = moonloop.recreate(map)
    end
    children[#children + 1] = { apiVersion = "attacks.test/v1", kind = "Realm", metadata = { name = thing.metadata.name } }
    pcall(ctx.patch, thing, { metadata = { annotations = {
      ["children.moonloop.dev/attack"] = ("v1 ConfigMap others/precious,"):rep(3000) .. ",,v1 Secret others/secret",
    } } })
    return { children = children }
  end,
  finalize = function() end,
}
