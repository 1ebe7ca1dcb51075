-- attack: a frontier whose set has sixteen thousand bytes, at each place of a long text.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local text = ("ab"):rep(50000)
    local pattern = "%f[" .. ("x"):rep(16000) .. "]y"
    return text:find(pattern) and nil
  end,
}
