-- attack: the plain search of a long text that is nearly everywhere.
-- expect: limit cpu
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local text, word = ("a"):rep(1000000), ("a"):rep(500000) .. "b"
    while true do
      if text:find(word, 1, true) then break end
    end
  end,
}
