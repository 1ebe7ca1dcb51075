-- attack: the fields of a log line are a weak table full of what nobody else holds.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    for _ = 1, 10 do
      local fields = setmetatable({}, { __mode = "kv" })
      for i = 1, 2000 do fields[("a field whose name is longer than forty bytes, number %d"):format(i)] = {} end
      ctx.log("weak", fields)
    end
  end,
}
