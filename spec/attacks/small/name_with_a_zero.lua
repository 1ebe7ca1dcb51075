-- attack: a controller's name that ends, for C, before it ends for Lua.
-- expect: refused /name/
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  reconciles = Thing,
  name = "attack\0../../x",
  reconcile = function()
    return
  end,
}
