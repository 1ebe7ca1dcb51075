-- attack: each value there is as a status.
-- expect: held
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
    return { status = hostile.values[number % #hostile.values + 1] }
  end,
}
