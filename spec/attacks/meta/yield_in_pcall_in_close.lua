-- attack: calls that wait in pcall, in functions that close variables, in the middle of an error.
-- expect: held
-- objects: 10
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Map = moonloop.kind("v1", "ConfigMap")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  uses = { Map },
  reconcile = function(_, ctx)
    local function closing() return setmetatable({}, { __close = function() ctx.get(Map, "precious") end }) end
    for _ = 1, 5 do
      pcall(function()
        local a <close> = closing() -- luacheck: ignore
        local b <close> = closing() -- luacheck: ignore
        ctx.get(Map, "nobody")
        error "no"
      end)
    end
    local c <close> = closing() -- luacheck: ignore
    error "again"
  end,
}
