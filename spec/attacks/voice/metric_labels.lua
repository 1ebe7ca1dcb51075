-- attack: names that would end a line of the metrics.
-- expect: refused
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  reconciles = Thing,
  name = 'attack"} 5\ncontroller_runtime_reconcile_total{controller="bystander',
  reconcile = function()
    return
  end,
}
