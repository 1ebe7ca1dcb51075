-- attack: rawset, rawget, next, table functions and setmetatable on ctx.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    if pcall(setmetatable, ctx, nil) then error "ESCAPED: ctx has no guard" end
    rawset(ctx, "now", function() return 0 end)
    pcall(table.insert, ctx, 1)
    pcall(table.sort, ctx)
    pcall(next, ctx)
    for key in pairs(ctx) do rawset(ctx, key, nil) end
    if ctx.now() < 1 then error "ESCAPED: ctx.now was replaced" end
  end,
}
