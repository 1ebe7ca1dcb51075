-- attack: the function of gsub calls gsub, until the C stack ends.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local function again(text) return (text:gsub(".", again)) end
    for _ = 1, 20 do pcall(again, "abc") end
  end,
}
