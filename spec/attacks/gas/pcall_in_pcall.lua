-- attack: pcall of pcall of pcall, until the C stack ends.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local function again() return pcall(again) end
    again()
    local function deeper(n) return pcall(deeper, n + 1) and nil, pcall(deeper, n + 1) end
    deeper(1)
  end,
}
