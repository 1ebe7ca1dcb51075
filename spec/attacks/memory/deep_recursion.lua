-- attack: recursion that is as deep as the stack allows, with many locals.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local function deep(a, b, c, d, e, f, g, h) return 1 + deep(a, b, c, d, e, f, g, h) end
    for _ = 1, 10 do pcall(deep) end
  end,
}
