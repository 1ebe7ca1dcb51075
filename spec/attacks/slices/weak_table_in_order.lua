-- attack: pairs puts the keys of a table in order, from which the collector takes what nobody else holds.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    for round = 1, 5 do
      local weak = setmetatable({}, { __mode = "v" })
      for i = 1, 6000 do weak[("a key of round %d, number %d "):format(round, i):rep(10)] = {} end
      local n = 0
      for key in pairs(weak) do n = n + #key end
      for key, value in next, weak do n = n + #key + #value end
    end
  end,
}
