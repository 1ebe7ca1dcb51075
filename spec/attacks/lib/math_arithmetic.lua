-- attack: the operators get each two values there are.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local operators = { function(a, b) return a + b end, function(a, b) return a - b end, function(a, b) return a * b end,
      function(a, b) return a / b end, function(a, b) return a % b end, function(a, b) return a // b end, function(a, b) return a ^ b end,
      function(a, b) return a & b end, function(a, b) return a | b end, function(a, b) return a ~ b end, function(a, b) return a << b end,
      function(a, b) return a >> b end, function(a, b) return a .. b end, function(a, b) return a < b end, function(a, b) return a <= b end,
      function(a, b) return a == b end, function(a, b) return a[b] end, function(a, b) a[b] = a end, function(a) return -a end,
      function(a) return ~a end, function(a) return #a end, function(a, b) for _ = a, b do return end end,
      function(a, b) for _ = 1, a, b do return end end, function(a, b) for _ in a, b do return end end }
    for i = 1, #operators do
      hostile.throw_one(operators[i])
      hostile.throw_one(operators[i], math.mininteger)
      hostile.throw_one(operators[i], "10")
      hostile.throw_one(function(value) return operators[i](value, -1) end)
      hostile.throw_one(function(value) return operators[i](value, 0) end)
    end
  end,
}
