-- attack: __index and __newindex that are the table itself, and each other.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local a, b = {}, {}
    setmetatable(a, { __index = b, __newindex = b })
    setmetatable(b, { __index = a, __newindex = a })
    pcall(function() return a.x end)
    pcall(function() a.x = 1 end)
    local c = {}
    for _, name in ipairs { "__index", "__newindex", "__call", "__concat", "__len", "__eq", "__lt" } do rawset(c, name, c) end
    setmetatable(c, c)
    pcall(function() return c.nothing end)
    pcall(function() return c() end)
    pcall(function() return c .. c end)
    pcall(function() return #c end)
  end,
}
