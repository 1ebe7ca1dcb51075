-- attack: moonloop.result, which reads what reconcile returns, is replaced.
-- expect: error /returned a number/
local result = require "moonloop.result"
result.check = function() return "ok", 5, {}, {}, {}, {} end
result.invalid = function() return setmetatable({}, {}) end
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    return 7
  end,
}
