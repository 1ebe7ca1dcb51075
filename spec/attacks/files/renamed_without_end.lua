-- attack: a script is edited 150 times, each time with another controller's name.
-- expect: held
-- renames: 150
-- for: 3500ms
-- memory: 200
local moonloop = require "moonloop"
local kept = ("x"):rep(1000000) .. "@N@"
return moonloop.controller {
  name = "attack-@N@",
  reconciles = moonloop.kind("attacks.test/v1", "Thing"),
  reconcile = function() return { requeue_after = #kept > 0 and 0.05 } end,
}
