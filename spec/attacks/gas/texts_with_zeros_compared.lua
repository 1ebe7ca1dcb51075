-- attack: texts of a megabyte of zero bytes, which are compared piece by piece.
-- expect: limit cpu
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local a, b = ("\0"):rep(1000000), ("\0"):rep(1000000) .. "b"
    local n = 0
    while true do
      if a < b then n = n + 1 end
    end
  end,
}
