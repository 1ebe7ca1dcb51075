-- attack: labels of a filter that would add to the query of the URL.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  uses = { Map },
  reconcile = function(_, ctx)
    for _, labels in ipairs { { a = "b&watch=1" }, { ["a=b,c"] = "d" }, { ["!a"] = "" }, { ["a in (b)"] = "" }, { a = "b,c!=d" },
      { [""] = "" }, { a = "\n" }, { a = "b#" }, { ["a/b/c"] = "d" }, { a = ("v"):rep(64) }, { a = "%26" }, { a = {} }, { a = 5 },
      { "a" }, { [1.5] = "a" }, { [true] = "a" } } do
      pcall(ctx.list, Map, { labels = labels })
    end
  end,
}
