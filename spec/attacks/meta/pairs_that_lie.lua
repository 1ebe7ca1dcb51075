-- attack: __pairs gives iterators that are tables, numbers, functions that raise.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    for _, iterator in ipairs { 5, {}, "x", function() error "no" end, function() return function() return 1, 2 end end } do
      pcall(function()
        local n = 0
        for _ in pairs(setmetatable({}, { __pairs = iterator })) do
          n = n + 1
          if n > 10 then break end
        end
      end)
    end
  end,
}
