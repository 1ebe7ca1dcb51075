-- attack: integer keys that all fall into one place of the hash as soon as it grows, so that one rehash is quadratic.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local t = {}
    for i = 1, 70000 do t[i * 131071] = i end
  end,
}
