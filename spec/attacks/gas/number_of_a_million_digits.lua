-- attack: tonumber of long texts, in each base.
-- expect: limit cpu
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local digits, spaces = ("9"):rep(900000), (" "):rep(900000)
    while true do
      tonumber(digits)
      tonumber("0x" .. digits)
      tonumber(digits, 36)
      tonumber(spaces .. "1" .. spaces:sub(1, 50000))
    end
  end,
}
