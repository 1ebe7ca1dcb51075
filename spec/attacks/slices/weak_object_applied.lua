-- attack: ctx.apply, create and patch get objects whose tables are weak.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  owns = { Map },
  reconcile = function(thing, ctx)
    local function weak()
      local t = setmetatable({}, { __mode = "kv" })
      for i = 1, 3000 do t[("a key that is longer than forty bytes, in the data, number %d"):format(i)] = {} end
      return t
    end
    pcall(ctx.apply, { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "weak" }, data = weak() })
    pcall(ctx.create, { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "weak-2", labels = weak(), annotations = weak() } })
    pcall(ctx.patch, thing, { metadata = { annotations = weak() } })
    pcall(ctx.list, Thing, { labels = weak() })
  end,
}
