-- Tells of each reconcile in an Event: always the same, in other words each time, or for another reason each time.
local moonloop = require "moonloop"

local Thing = moonloop.kind("example.com/v1", "Thing")

local tell = {
  quiet = function() end,
  same = function(ctx) ctx.event("Seen", "it was seen") end,
  words = function(ctx, second) ctx.event("Seen", ("it was seen in second %d"):format(second)) end,
  reasons = function(ctx, second) ctx.event(("Seen%d"):format(second), "it was seen") end,
}

return moonloop.controller {
  name = "chatter",
  reconciles = Thing,

  reconcile = function(thing, ctx)
    local mode, second = thing.spec.mode:match "^(%a+) (%d+)$"
    second = math.tointeger(tonumber(second))
    tell[mode](ctx, second)
    return { status = { seen = second } }
  end,
}
