-- attack: gmatch of what is empty, in the iterator alone.
-- expect: limit cpu
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local text = ("a"):rep(100000)
    while true do
      for _ in text:gmatch "b*()c" do end
    end
  end,
}
