-- attack: ctx.ensure gets each value there is, and as each field of an object.
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
    local function object() return { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "m" .. step }, data = {} } end
    local value = hostile.values[step % #hostile.values + 1]
    pcall(ctx.ensure, value)
    pcall(ctx.ensure)
    pcall(ctx.ensure, object(), value)
    pcall(ctx.ensure, object(), { adopt = value })
    for _, field in ipairs { "apiVersion", "kind", "metadata", "data", "status" } do
      local one = object()
      one[field] = value
      pcall(ctx.ensure, one)
    end
    for _, field in ipairs { "name", "namespace", "uid", "resourceVersion", "labels", "annotations", "ownerReferences", "generateName" } do
      local one = object()
      one.metadata[field] = value
      pcall(ctx.ensure, one)
    end
    local unnamed = object()
    unnamed.metadata = { generateName = value, namespace = value }
    pcall(ctx.ensure, unnamed)
    hostile.sane()
  end,
}
