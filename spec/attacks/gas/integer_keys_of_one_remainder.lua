-- attack: integer keys that leave one remainder by each size the hash can have, less one.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local t, step = {}, 1
    for bits = 1, 12 do
      local size = (1 << bits) - 1 | 1
      local a, b = step, size
      while b ~= 0 do a, b = b, a % b end
      step = step // a * size
      if step > 1 << 50 then break end
    end
    for i = 1, 60000 do t[i * step] = i end
  end,
}
