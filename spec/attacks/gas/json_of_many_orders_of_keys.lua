-- attack: objects with keys in ever other orders, so that the tree of shapes grows.
-- expect: held
local cjson = require "cjson"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    for i = 1, 3000 do
      local members = {}
      for j = 1, 20 do members[j] = ('"k%d_%d":%d'):format(i * j % 97, j, i) end
      cjson.decode("{" .. table.concat(members, ",") .. "}")
    end
  end,
}
