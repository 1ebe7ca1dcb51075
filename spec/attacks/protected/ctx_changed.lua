-- attack: rawset, rawget, next, table functions and setmetatable on ctx.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    if pcall(setmetatable, ctx, nil) then error "ESCAPED: ctx has no guard" end
    if pcall(rawset, ctx, "now", function() return 0 end) then error "ESCAPED: ctx took a value" end
    if pcall(table.insert, ctx, 1) then error "ESCAPED: ctx took an element" end
    pcall(table.sort, ctx)
    pcall(table.move, { 1, 2 }, 1, 2, 1, ctx)
    if pcall(next, ctx) or pcall(pairs, ctx) then error "ESCAPED: ctx shows its fields" end
    if ctx.now() < 1 then error "ESCAPED: ctx.now was replaced" end
  end,
}
