-- The bystander: an honest script beside each hostile program, which has to keep its pace.
local moonloop = require "moonloop"
local Beat = moonloop.kind("bystander.test/v1", "Beat")

return moonloop.controller {
  name = "bystander",
  reconciles = Beat,
  reconcile = function(_, ctx)
    ctx.log("tick")
    return { requeue_after = 0.05 }
  end,
}
