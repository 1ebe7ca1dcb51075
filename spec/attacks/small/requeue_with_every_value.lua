-- attack: values that are no numbers as requeue_after and requeue_at.
-- expect: held
-- objects: 60
-- for: 500ms
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
    if number % 3 == 0 then return { requeue_after = value } end
    if number % 3 == 1 then return { requeue_at = value } end
    return { requeue_after = value, requeue_at = value }
  end,
}
