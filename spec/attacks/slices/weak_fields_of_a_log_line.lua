-- attack: the fields of a log line are a weak table full of what nobody else holds.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    for _ = 1, 50 do
      local fields = setmetatable({}, { __mode = "kv" })
      for i = 1, 100 do fields["field " .. i] = ("v"):rep(100) .. i end
      ctx.log("weak", fields)
    end
  end,
}
