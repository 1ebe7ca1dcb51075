-- attack: a script is edited every 20 ms, while its reconciles wait.
-- expect: held
-- renames: 60
-- objects: 20
-- for: 1500ms
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")
local edit = @N@

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  uses = { Map },
  reconcile = function(_, ctx)
    for _ = 1, 50 do ctx.get(Map, "precious") end
    return { status = { edit = edit } }
  end,
}
