-- attack: upper, lower, reverse, sub, rep, byte and char of a megabyte.
-- expect: limit cpu
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local text = ("a"):rep(1000000)
    while true do
      text:upper():lower():reverse():sub(2, -2)
      pcall(string.byte, text, 1, -1)
      utf8.len(text)
    end
  end,
}
