-- attack: apiVersion, kind and name come from __index, another one each time they are asked.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  owns = { Map },
  reconcile = function(_, ctx)
    local asked = 0
    local function changing(values)
      return setmetatable({}, { __index = function(_, key)
        asked = asked + 1
        local value = values[key]
        return type(value) == "table" and value[asked % #value + 1] or value
      end })
    end
    for _ = 1, 10 do
      pcall(ctx.apply, changing { apiVersion = "v1", kind = { "ConfigMap", "Secret" }, metadata = { name = "precious" } })
      pcall(ctx.create, { apiVersion = "v1", kind = "ConfigMap", metadata = changing { name = { "a", "../secrets/b" } } })
    end
  end,
}
