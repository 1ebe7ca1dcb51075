-- attack: the encoder sorts the keys of a table whose keys the collector takes away.
-- expect: held
local cjson = require "cjson"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    for round = 1, 20 do
      local weak = setmetatable({}, { __mode = "k" })
      for i = 1, 500 do weak["key " .. i .. " of round " .. round] = ("value"):rep(20) .. i end
      local text = cjson.encode { weak, weak }
      if #text < 2 then error "ESCAPED: nothing" end
    end
  end,
}
