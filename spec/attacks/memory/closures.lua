-- attack: closures are kept without end, each with an upvalue of its own.
-- expect: limit memory
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local list = {}
    while true do
      local held = #list
      list[held + 1] = function() return held end
    end
  end,
}
