-- attack: back references of long captures.
-- expect: limit cpu
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local text = ("a"):rep(20000)
    return text:match "(.-)(.-)(.-)%1%2%3b" and nil
  end,
}
