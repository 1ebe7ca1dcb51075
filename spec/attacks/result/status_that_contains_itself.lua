-- attack: a status that contains itself.
-- expect: error /deep|itself/
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local status = {}
    status.status = status
    return { status = status }
  end,
}
