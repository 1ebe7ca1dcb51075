-- attack: forty files that all declare the same controller, which is the bystander's.
-- expect: refused /taken|name/
-- copies: 40
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  reconciles = Thing,
  name = "bystander",
  reconcile = function()
    error "ESCAPED: it took the place of another"
  end,
}
