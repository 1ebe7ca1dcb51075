-- attack: conditions that are texts, numbers, without a type, with types that are tables.
-- expect: held
-- objects: 12
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local number = 0
local lists = { "x", 5, {}, { 1 }, { {} }, { { type = {} } }, { { type = 5, status = {} } }, { a = { type = "A" } },
  { { type = "", status = "" } }, { { type = ("t"):rep(100000) } }, { { type = "A", lastTransitionTime = {} } },
  { { type = "Invalid", status = "True" }, { type = "Failed", status = "x" } } }

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    number = number + 1
    return { status = { conditions = lists[number % #lists + 1] } }
  end,
}
