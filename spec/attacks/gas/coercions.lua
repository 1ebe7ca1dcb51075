-- attack: arithmetic on texts of many digits.
-- expect: limit cpu
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local digits = ("1"):rep(190)
    local n = 0
    while true do n = n + (digits + digits) * "0x10" // "3" end
  end,
}
