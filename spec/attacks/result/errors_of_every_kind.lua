-- attack: error is called with each value there is, at each level.
-- expect: error
-- objects: 60
-- for: 400ms
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local number = 0

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    number = number + 1
    error(hostile.values[number % #hostile.values + 1], number % 5 - 1)
  end,
}
