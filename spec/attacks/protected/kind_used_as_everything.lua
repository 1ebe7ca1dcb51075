-- attack: a kind is called, indexed, changed, compared, measured, joined, converted, iterated and keyed.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local k = Thing
    local uses = { function() k.x = 1 end, function() return k() end, function() return #k end, function() return k < k end,
      function() return k .. k end, function() return k + 1 end, function() return -k end, function() return k.nothing end,
      function() return k[1] end, function() return k[{}] end, function() return k[0 / 0] end, function() return ~k end,
      function() for _ in pairs(k) do end end, function() for _ in ipairs(k) do end end, function() next(k) end,
      function() rawset(k, 1, 1) end, function() return rawget(k, 1) end, function() return rawlen(k) end,
      function() setmetatable(k, {}) end, function() table.insert(k, 1) end, function() return k == {} end,
      function() local x <close> = k end, function() return tostring(k):rep(2) end, function() return k[k] end } -- luacheck: ignore
    for _, use in ipairs(uses) do pcall(use) end
    if getmetatable(k) then error "ESCAPED: the metatable of kinds" end
    if k.kind ~= "Thing" or tostring(k) ~= "attacks.test/v1/Thing" then error "ESCAPED: a kind was changed" end
  end,
}
