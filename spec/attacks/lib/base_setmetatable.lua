-- attack: setmetatable gets each value there is in each place.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local function mine(value) return value ~= string and value ~= math and value ~= _ENV and value ~= moonloop end
    for i = 1, #hostile.values do
      local value = hostile.values[i]
      hostile.throw_one(function(target) if mine(target) then setmetatable(target, value) end end)
      pcall(setmetatable, {}, value)
    end
    for _, name in ipairs { "__gc", "__mode", "__metatable", "__name", "__index" } do
      hostile.throw_one(function(value) return setmetatable({}, { [name] = value }) end)
    end
  end,
}
