-- attack: at the end of the time __close reads and writes.
-- expect: limit cpu
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    local last <close> = setmetatable({}, { __close = function() -- luacheck: ignore
      while true do pcall(ctx.get, Thing, "t1") pcall(ctx.log, "x") end
    end })
    while true do end
  end,
}
