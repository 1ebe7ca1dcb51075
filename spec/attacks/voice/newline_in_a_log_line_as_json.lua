-- attack: a log line that ends the JSON and begins another.
-- expect: ok
-- log: json
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    ctx.log 'x"}\n{"level":"error","ts":"2026-01-01T00:00:00.000Z","logger":"host","msg":"FORGED"}'
    ctx.log("x", { ['a":1},"logger":"host","b":{"c'] = '"}}\n{"level":"error"' })
    ctx.log "\xff\0\27"
  end,
}
