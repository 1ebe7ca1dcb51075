-- attack: the encoder sorts the keys of a table from which the collector takes what nobody else holds, key and all.
-- expect: held
local cjson = require "cjson"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    for round = 1, 5 do
      local weak = setmetatable({}, { __mode = "kv" })
      for i = 1, 3000 do weak[("a key that is longer than forty bytes, number %d of round %d"):format(i, round)] = {} end
      if #cjson.encode(weak) < 2 then error "ESCAPED: nothing" end
    end
  end,
}
