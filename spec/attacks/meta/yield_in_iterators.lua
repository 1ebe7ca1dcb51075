-- attack: calls that wait, from inside the iterator of a for, of gmatch, of next.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  uses = { Map },
  reconcile = function(_, ctx)
    local n = 0
    for _ in function() n = n + 1 return ctx.get(Map, "precious") and n < 5 or nil end do n = n + 0 end
    for _ in ("a b c"):gmatch "%a" do ctx.get(Map, "precious") end
    for _ in pairs { a = 1, b = 2 } do ctx.get(Map, "precious") end
  end,
}
