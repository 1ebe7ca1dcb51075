-- attack: texts of a megabyte are compared.
-- expect: limit cpu
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local a, b = ("a"):rep(1000000) .. "a", ("a"):rep(1000000) .. "b"
    local n = 0
    while true do
      if a < b then n = n + 1 end
      if a <= b then n = n + 1 end
    end
  end,
}
