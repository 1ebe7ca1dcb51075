-- attack: quantity gets each value there is, and amounts that overflow, underflow and have no end.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local quantity = require "moonloop.quantity"

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    for _, name in ipairs { "parse", "format", "number", "compare", "add", "subtract", "multiply" } do
      hostile.throw(quantity[name])
      hostile.throw_one(quantity[name], "1Gi")
    end
    local texts = { "1e400", "1e-400", "-1e400", "1e99999999999999999999", "9223372036854775807Ei", "0e999999999", ("9"):rep(128), ("9"):rep(129), "." , "-", "+Ki",
      "0x10", "1e", "1E", "1e+", "1.2.3", "1\0", "nan", "inf", ("0"):rep(1000000), "1" .. ("0"):rep(35), "1e35", "-999999999999999999999999999999999999" }
    for _, a in ipairs(texts) do
      for _, b in ipairs(texts) do
        for _, name in ipairs { "compare", "add", "subtract", "multiply" } do quantity[name](a, b) end
      end
    end
    local sum = "1e35"
    for _ = 1, 100 do sum = quantity.add(sum, sum) or sum end
    if quantity.number(sum) >= 1e36 then error "ESCAPED: past the limit" end
  end,
}
