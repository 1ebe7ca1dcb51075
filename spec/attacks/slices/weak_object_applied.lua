-- attack: ctx.apply gets an object whose tables are weak.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  owns = { Map },
  reconcile = function(_, ctx)
    local weak = setmetatable({}, { __mode = "kv" })
    for i = 1, 500 do weak["key" .. i] = ("value "):rep(10) .. i end
    ctx.apply { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "weak" }, data = weak }
  end,
}
