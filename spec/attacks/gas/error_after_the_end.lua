-- attack: after the end of the time the error is swallowed in __index, __lt of sort and gsub.
-- expect: limit cpu
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local t = setmetatable({}, { __index = function() while true do end end })
    while true do
      pcall(function() return t.x end)
      pcall(table.sort, { 1, 2, 3 }, function() while true do end end)
      pcall(string.gsub, "abc", ".", function() while true do end end)
    end
  end,
}
