-- attack: when is a list whose words are parts at the first look and tables at the second.
-- expect: refused
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local looks = 0

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  when = setmetatable({ 1 }, { __index = function() looks = looks + 1 return looks < 3 and "labels" or {} end }),
  reconcile = function()
    return
  end,
}
