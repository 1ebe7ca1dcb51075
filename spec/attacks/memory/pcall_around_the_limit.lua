-- attack: pcall catches the end of the memory, and goes on.
-- expect: limit memory
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local list = {}
    while true do
      pcall(function()
        while true do list[#list + 1] = ("x"):rep(1000000) .. #list end
      end)
    end
  end,
}
