-- attack: moonloop.array replaces the metatable that guards ctx.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    local ok = pcall(moonloop.array, ctx)
    if ok then error "ESCAPED: ctx was marked" end
    if pcall(function() ctx.get = 1 end) then error "ESCAPED: ctx was changed" end
    if pcall(function() return ctx.nothing end) then error "ESCAPED: ctx has lost its guard" end
  end,
}
