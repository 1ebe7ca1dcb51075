-- attack: lists and reads in namespaces that are paths, patterns and queries.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  uses = { Map },
  reconcile = function(_, ctx)
    for _, namespace in ipairs { "../others", "others/../others", "..", ".", "default/configmaps/x", "%2e%2e", "a?b=c", "a#b", "a b",
      "others\n", "\0", "*/..", "a/../../secrets", ("n"):rep(300) } do
      local ok, got = pcall(ctx.list, Map, { namespace = namespace })
      if ok and got then error("ESCAPED: a list of " .. namespace) end
      ok, got = pcall(ctx.get, Map, "precious", namespace)
      if ok and got then error("ESCAPED: a read in " .. namespace) end
    end
  end,
}
