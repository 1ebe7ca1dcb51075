-- attack: ctx.apply gets each value there is, and as each field of an object.
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
  owns = { { kind = Map, adopt = true } },
  reconcile = function(_, ctx)
    step = step + 1
    local function object() return { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "m" .. step }, data = {} } end
    local value = hostile.values[step % #hostile.values + 1]
    pcall(ctx.apply, value)
    pcall(ctx.apply)
    pcall(ctx.apply, object(), value)
    pcall(ctx.apply, object(), { adopt = value })
    for _, field in ipairs { "apiVersion", "kind", "metadata", "data", "status" } do
      local one = object()
      one[field] = value
      pcall(ctx.apply, one)
    end
    for _, field in ipairs { "name", "namespace", "uid", "resourceVersion", "labels", "annotations", "ownerReferences", "generateName" } do
      local one = object()
      one.metadata[field] = value
      pcall(ctx.apply, one)
    end
    hostile.sane()
  end,
}
