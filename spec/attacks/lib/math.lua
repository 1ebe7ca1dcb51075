-- attack: each function of math gets each value there is, and each two of them.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    for _, name in ipairs { "abs", "acos", "asin", "atan", "ceil", "cos", "deg", "floor", "exp", "log", "rad", "sqrt", "sin", "tan", "tointeger", "type", "random", "fmod", "modf", "max", "min", "ult" } do
      hostile.throw_one(math[name])
      hostile.throw_one(math[name], 1)
      hostile.throw_one(math[name], math.mininteger)
    end
    hostile.throw(math.fmod)
    hostile.throw(math.ult)
  end,
}
