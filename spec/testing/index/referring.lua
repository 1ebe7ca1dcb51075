-- The script of index_test.lua: Things that refer to ConfigMaps by name; `by_map` finds them. A ConfigMap's text goes
-- into the status of each, with the names of the Things that refer to the same one.
local moonloop = require "moonloop"

local Thing = moonloop.kind("example.com/v1", "Thing")
local ConfigMap = moonloop.kind("v1", "ConfigMap")

local by_map = moonloop.index(Thing, function(thing)
  if thing.spec.mode == "raise" then
    error "no index for this"
  end
  return thing.spec.mode
end)

local function concerned(map, ctx)
  local names = {}
  for i, thing in ipairs(ctx.list(Thing, { index = by_map, key = map.metadata.name })) do
    names[i] = { namespace = thing.metadata.namespace, name = thing.metadata.name }
  end
  return names
end

return moonloop.controller {
  name = "referring",
  reconciles = Thing,
  watches = { moonloop.watch(ConfigMap, concerned) },

  reconcile = function(thing, ctx)
    local map = ctx.get(ConfigMap, thing.spec.mode)
    local peers = {}
    for i, peer in ipairs(ctx.list(Thing, { index = by_map, key = thing.spec.mode })) do
      peers[i] = peer.metadata.name
    end
    return { status = { text = map and map.data.text or "none", peers = table.concat(peers, " ") } }
  end,
}
