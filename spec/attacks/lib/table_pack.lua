-- attack: table.pack gets all values at once, and its n is changed.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local all = table.pack(table.unpack(hostile.values))
    all.n = math.maxinteger
    pcall(table.unpack, all, 1, all.n)
    all.n = setmetatable({}, { __lt = function() return true end })
    pcall(table.unpack, all, 1, all.n)
    hostile.throw(table.pack)
  end,
}
