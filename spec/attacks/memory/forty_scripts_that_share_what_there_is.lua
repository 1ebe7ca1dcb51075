-- attack: forty scripts; those that find room keep 3 MiB each, and ask for more in each reconcile.
-- expect: held
-- copies: 40
-- for: 1s
-- memory: 32
local moonloop = require "moonloop"
local kept = {}
for i = 1, 48 do kept[i] = ("x"):rep(64 * 1024 - 100 - i) end
return moonloop.controller {
  name = "attack-@N@",
  reconciles = moonloop.kind("attacks.test/v1", "Thing"),
  reconcile = function()
    for _ = 1, 16 do kept[#kept + 1] = ("x"):rep(64 * 1024 - 100 - #kept) end
    return { requeue_after = 0.01 }
  end,
}
