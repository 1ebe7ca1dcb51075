-- attack: a function of when that takes long, asked for each change of many objects that the script makes itself.
-- expect: held
-- objects: 40
-- for: 1s
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local function slow()
  for _ = 1, 300000 do end
  return true
end

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  when = slow,
  reconcile = function()
    return { status = { n = math.random(1000000) }, requeue_after = 0 }
  end,
}
