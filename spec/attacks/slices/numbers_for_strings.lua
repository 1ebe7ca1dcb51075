-- attack: numbers, which Lua turns into strings in place, as keys, names, notes and messages.
-- expect: held
local cjson = require "cjson"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    pcall(cjson.encode, { [1.5] = 1 })
    pcall(cjson.encode, { [2 ^ 53] = 1, a = 2 })
    pcall(cjson.decode, 5)
    pcall(ctx.log, 5)
    pcall(ctx.event, 5, 6)
    pcall(ctx.event, "Reason", 7)
    pcall(ctx.get, Thing, 8)
    pcall(ctx.list, Thing, { namespace = 9, labels = { [1] = 2, [3.5] = 4 } })
    pcall(ctx.list, Thing, { labels = { a = 5 } })
    for key in pairs { 1, 2, [1.5] = 3, [-1] = 4, x = 5 } do tostring(key):upper() end
  end,
}
