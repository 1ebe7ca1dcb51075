-- attack: functions of ctx are kept, and called where nobody reconciles.
-- expect: held
-- touches: 3
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local kept

local function abuse()
  if not kept then return end
  for _, name in ipairs { "get", "list", "ensure", "create", "apply", "patch", "delete", "event", "log", "now", "invalid", "terminal" } do
    pcall(function() return kept[name](Thing, "t1") end)
    pcall(function() return kept[name]({ apiVersion = "attacks.test/v1", kind = "Thing", metadata = { name = "x" } }) end)
    pcall(function() return kept[name]("a", "b") end)
  end
end

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  when = function()
    abuse()
    return true
  end,
  watches = { moonloop.watch(moonloop.kind("attacks.test/v1", "Part"), abuse) },
  reconcile = function(_, ctx)
    kept = ctx
    abuse()
    return { status = { n = math.random(100) } }
  end,
}
