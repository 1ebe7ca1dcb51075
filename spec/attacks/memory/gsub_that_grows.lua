-- attack: gsub puts a large text in place of each byte of another.
-- expect: limit memory
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local text = ("x"):rep(100000)
    return text:gsub(".", text) and nil
  end,
}
