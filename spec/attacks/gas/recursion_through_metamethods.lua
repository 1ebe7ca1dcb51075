-- attack: __index calls itself through another table, until the C stack ends, again and again.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local t = {}
    setmetatable(t, { __index = function(_, key) return t[key .. "x"] end })
    for _ = 1, 100 do pcall(function() return t.a end) end
    local u = setmetatable({}, { __call = function(self, ...) return self(...) end })
    pcall(u)
    local v = setmetatable({}, { __tostring = function(self) return tostring(self) end })
    for _ = 1, 100 do pcall(tostring, v) end
  end,
}
