-- attack: a watch function that takes nearly all of its time, for each of sixty objects.
-- expect: held
-- objects: 60
-- for: 1s
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local function slow(_, ctx)
  local start = ctx.now()
  while ctx.now() - start < 0.08 do
    for _ = 1, 1000 do end
  end
end
local Part = moonloop.kind("attacks.test/v1", "Part")

return moonloop.controller {
  name = "attack",
  reconciles = Part,
  watches = { moonloop.watch(Thing, slow) },
  reconcile = function()
    return
  end,
}
