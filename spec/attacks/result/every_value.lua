-- attack: reconcile returns each value there is, and two of them.
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
    local value = hostile.values[number % #hostile.values + 1]
    if number % 2 == 0 then return value end
    return nil, value
  end,
}
