-- attack: what else ctx.list can be given.
-- expect: held
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    for _, option in ipairs { "namespace", "labels", "owned", "limit", "fields" } do
      for _, value in ipairs(hostile.values) do
        pcall(ctx.list, Thing, { [option] = value })
      end
    end
  end,
}
