-- attack: moonloop.null is called, indexed, changed, measured, compared and keyed.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local n = moonloop.null
    local uses = { function() n.x = 1 end, function() return n() end, function() return #n end, function() return n.x end,
      function() return n .. n end, function() return n + 1 end, function() return n < n end, function() setmetatable(n, {}) end,
      function() rawset(n, 1, 1) end, function() for _ in pairs(n) do end end, function() next(n) end,
      function() moonloop.null = 5 end, function() return ({ [n] = 1 })[n] end, function() error(n) end }
    for _, use in ipairs(uses) do pcall(use) end
    if getmetatable(n) then error "ESCAPED: the metatable of null" end
    return { status = { gone = n } }
  end,
}
