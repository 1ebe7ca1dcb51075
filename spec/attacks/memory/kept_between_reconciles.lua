-- attack: each reconcile leaves more in the locals of the file.
-- expect: limit memory
-- objects: 20
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local kept = {}

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    for _ = 1, 20 do kept[#kept + 1] = ("x"):rep(100000 + #kept) end
    return { requeue_after = 0 }
  end,
}
