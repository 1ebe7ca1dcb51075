-- attack: JSON of a million open brackets, and numbers of a million digits.
-- expect: limit cpu
local cjson = require "cjson"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local open, digits = ("["):rep(1000000), ("9"):rep(1000000)
    local exponent = "1e" .. ("9"):rep(500000)
    while true do
      pcall(cjson.decode, open)
      pcall(cjson.decode, digits)
      pcall(cjson.decode, exponent)
      pcall(cjson.decode, "0." .. digits:sub(1, 500000))
    end
  end,
}
