-- attack: __call whose value is a table with __call, without end.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local last = function() end
    for _ = 1, 20000 do last = setmetatable({}, { __call = last }) end
    pcall(last)
  end,
}
