-- attack: calls that wait, from inside each metamethod there is.
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
    local function wait() return ctx.get(Map, "precious") and 1 end
    local all = {}
    for _, name in ipairs { "index", "newindex", "call", "add", "concat", "eq", "lt", "le", "len", "unm", "close", "tostring", "pairs", "idiv" } do
      all["__" .. name] = wait
    end
    local a, b = setmetatable({}, all), setmetatable({}, all)
    for _, use in ipairs { function() return a.x end, function() a.x = 1 end, function() return a() end, function() return a + b end,
      function() return a .. b end, function() return a == b end, function() return a < b end, function() return a <= b end,
      function() return #a end, function() return -a end, function() local x <close> = a end, function() return tostring(a) end, -- luacheck: ignore
      function() for _ in pairs(a) do end end, function() return a // b end, function() return ("x"):rep(a) end,
      function() return table.concat({ a }) end, function() return table.unpack(a) end } do
      pcall(use)
    end
  end,
}
