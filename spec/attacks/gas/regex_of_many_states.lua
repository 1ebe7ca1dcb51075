-- attack: A pattern whose every byte of text is another state, over long texts, forever.
-- expect: limit cpu
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local regex = require "moonloop.regex"

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local bits, seed = {}, 1
    for i = 1, 2000 do
      seed = (seed * 1103515245 + 12345) % 2147483648
      bits[i] = seed >> 16 & 1 == 1 and "a" or "b"
    end
    local text = table.concat(bits)
    while true do
      pcall(regex.match, text:rep(500), "((a|b)*a(a|b){300})c")
      pcall(regex.match, text, "((a|b)*a(a|b){300})c")
    end
  end,
}
