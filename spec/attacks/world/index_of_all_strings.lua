-- attack: rawset puts metamethods where the strings' metatable looks, and __index of string is another table.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
rawset(string, "__index", function() error "ESCAPED: index" end)
rawset(string, "__gc", function() error "ESCAPED: gc" end)
rawset(string, "__close", function() end)
setmetatable(string, { __index = function(_, key) return key end })

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local text = ("x").nothing
    if text ~= nil and text ~= "nothing" then error "ESCAPED: methods" end
    return { requeue_after = "5s" }
  end,
}
