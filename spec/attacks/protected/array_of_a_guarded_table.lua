-- attack: a script's own table with __metatable is taken from under its guard.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local guarded = setmetatable({}, { __metatable = "mine", __newindex = function() error "guarded" end })
    pcall(moonloop.array, guarded)
    if pcall(function() guarded.x = 1 end) then error "ESCAPED: the guard of a table is gone" end
  end,
}
