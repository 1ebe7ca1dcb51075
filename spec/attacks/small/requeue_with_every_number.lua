-- attack: each number there is as requeue_after and requeue_at: NaN, infinite, negative, beyond int64 as nanoseconds.
-- expect: held
-- objects: 30
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local number = 0
local values = { 0 / 0, 1 / 0, -1 / 0, -1, -0.0, -1e-300, 1e-300, 9e9, 9000000001, 8999999999.999, 9223372036, 9223372037,
  1e10, 1e18, 1e19, 1e300, math.maxinteger, math.mininteger, 2 ^ 53, -2 ^ 63, 2 ^ 63, 4e9, 5e-324, 1.7e308 }

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    number = number + 1
    local value = values[(number + 1) // 2 % #values + 1]
    if number % 2 == 0 then return { requeue_after = value } end
    return { requeue_at = value }
  end,
}
