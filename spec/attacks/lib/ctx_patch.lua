-- attack: ctx.patch gets each value there is, as the object and as changes of each field.
-- expect: held
-- objects: 60
-- for: 500ms
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")
local step = 0

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  owns = { Map },
  reconcile = function(_, ctx)
    step = step + 1
    local map = ctx.ensure { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "m" .. step } }
    local value = hostile.values[step % #hostile.values + 1]
    pcall(ctx.patch)
    pcall(ctx.patch, value, {})
    pcall(ctx.patch, map, value)
    pcall(ctx.patch, map, { data = value })
    pcall(ctx.patch, map, { data = { a = value } })
    for _, field in ipairs { "apiVersion", "kind", "metadata" } do
      local kept = map[field]
      map[field] = value
      pcall(ctx.patch, map, { data = { a = "b" } })
      map[field] = kept
    end
    for _, field in ipairs { "name", "namespace", "uid", "resourceVersion" } do
      local kept = map.metadata[field]
      map.metadata[field] = value
      pcall(ctx.patch, map, { data = { a = "c" } })
      map.metadata[field] = kept
    end
    hostile.sane()
  end,
}
