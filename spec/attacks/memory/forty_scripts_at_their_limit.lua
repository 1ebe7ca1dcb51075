-- attack: forty scripts that each keep as much as they may.
-- expect: held
-- copies: 40
-- for: 1s
-- memory: 32
local moonloop = require "moonloop"
local kept = {}
for i = 1, 14 do kept[i] = ("x"):rep(1024 * 1024 - 100 - i) end
return moonloop.controller {
  name = "attack-@N@",
  reconciles = moonloop.kind("attacks.test/v1", "Thing"),
  reconcile = function() return { status = { n = #kept } } end,
}
