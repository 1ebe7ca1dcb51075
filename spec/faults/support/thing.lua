-- Each way of writing that a script has: a Thing whose mode is "3 red" has three ConfigMaps that say red, a Secret of
-- each, which is made once, and a mark on the first ConfigMap.
local moonloop = require "moonloop"

local Thing = moonloop.kind("example.com/v1", "Thing")
local ConfigMap = moonloop.kind("v1", "ConfigMap")
local Secret = moonloop.kind("v1", "Secret")

local function child(kind, thing, index)
  return {
    apiVersion = kind.apiVersion, kind = kind.kind, metadata = { name = ("%s-%d"):format(thing.metadata.name, index) },
  }
end


local function remove_beyond(kind, size, ctx)
  for _, object in ipairs(ctx.list(kind, { owned = true })) do
    if tonumber(object.metadata.name:match "%d+$") > size then
      assert(ctx.delete(object))
    end
  end
end


return moonloop.controller {
  name = "thing",
  reconciles = Thing,
  owns = { ConfigMap, Secret },

  reconcile = function(thing, ctx)
    local size, text = thing.spec.mode:match "^(%d+) (%a+)$"
    size = tonumber(size)
    for index = 1, size do
      local map = child(ConfigMap, thing, index)
      map.data = { text = text }
      map = assert(ctx.apply(map))
      assert(ctx.ensure(child(Secret, thing, index)))
      if index == 1 and map.metadata.labels.first ~= "yes" then
        assert(ctx.patch(map, { metadata = { labels = { first = "yes" } } }))
      end
    end
    remove_beyond(ConfigMap, size, ctx)
    remove_beyond(Secret, size, ctx)
    return { status = { size = size, text = text } }
  end,
}
