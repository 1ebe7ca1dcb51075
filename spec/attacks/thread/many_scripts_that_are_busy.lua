-- attack: twenty scripts that each use half of their time at each turn and ask for the next.
-- expect: held
-- copies: 20
-- for: 1500ms
local moonloop = require "moonloop"
return moonloop.controller {
  name = "attack-@N@",
  reconciles = moonloop.kind("attacks.test/v1", "Thing"),
  reconcile = function(_, ctx)
    local start = ctx.now()
    while ctx.now() - start < 0.05 do
      for _ = 1, 1000 do end
    end
    return { requeue_after = 0 }
  end,
}
