-- attack: reads of names that are paths, patterns and queries.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  uses = { Map },
  reconcile = function(_, ctx)
    for _, name in ipairs { "../secrets/secret", "precious/../precious", "..", ".", "%2e%2e%2fsecrets", "precious?x=y", "precious#",
      "a b", "precious\n", "precious\0", "", "precious/status", ("n"):rep(300) } do
      local ok, got = pcall(ctx.get, Map, name)
      if ok and got then error("ESCAPED: a read of " .. name) end
    end
  end,
}
