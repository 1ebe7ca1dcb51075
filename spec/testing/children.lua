-- A script that returns children: a Thing whose mode is "3 red" has three ConfigMaps and three Secrets that say red.
-- The Secrets cannot be changed, so another colour makes them again. "0 once" has a ConfigMap with a generated name,
-- and a Secret of ctx.once.
local moonloop = require "moonloop"

local Thing = moonloop.kind("example.com/v1", "Thing")
local ConfigMap = moonloop.kind("v1", "ConfigMap")
local Secret = moonloop.kind("v1", "Secret")

local function named(kind, thing, index)
  return {
    apiVersion = kind.apiVersion, kind = kind.kind, metadata = { name = ("%s-%d"):format(thing.metadata.name, index) },
  }
end


local function config(thing, index, text)
  local object = named(ConfigMap, thing, index)
  object.data = { text = text }
  return object
end


local function sealed(thing, index, text)
  local object = named(Secret, thing, index)
  object.immutable = true
  object.stringData = { text = text }
  return object
end


return moonloop.controller {
  name = "thing",
  reconciles = Thing,
  owns = { ConfigMap, Secret },

  reconcile = function(thing, ctx)
    local size, text = thing.spec.mode:match "^(%d+) (%a+)$"
    local children = {}
    for index = 1, tonumber(size) do
      children[#children + 1] = config(thing, index, text)
      children[#children + 1] = moonloop.recreate(sealed(thing, index, text))
    end
    if text == "once" then
      assert(ctx.ensure { apiVersion = "v1", kind = "ConfigMap", metadata = { generateName = "once-" } })
      assert(ctx.once("values", { password = function() return "secret" end }))
    end
    return { children = children, status = { size = tonumber(size), text = text } }
  end,
}
