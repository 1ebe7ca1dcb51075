-- attack: objects are made whose name, namespace and generateName are paths.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  owns = { Map },
  reconcile = function(_, ctx)
    for _, call in ipairs { ctx.ensure, ctx.create, ctx.apply } do
      for _, name in ipairs { "../secrets/secret", "a/b", "..", ".", "%2e%2e", "a?b", "a\n", "a\0b", "", "A", "a b", ("n"):rep(254) } do
        if pcall(call, { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name } }) and #name > 0 and name ~= "A" then
          local ok, made = pcall(ctx.get, Map, name)
          if ok and made then error("ESCAPED: an object named " .. name) end
        end
        pcall(call, { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "x", namespace = name } })
        pcall(call, { apiVersion = "v1", kind = "ConfigMap", metadata = { generateName = name } })
      end
    end
  end,
}
