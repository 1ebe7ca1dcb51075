-- attack: an object that was read becomes weak, and its own keys, which have an order, go.
-- expect: held
local cjson = require "cjson"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local members = {}
    for i = 1, 3000 do members[i] = ('"a key that is longer than forty bytes, number %d":{}'):format(i) end
    for _ = 1, 3 do
      local object = cjson.decode("{" .. table.concat(members, ",") .. "}")
      for i = 1, 3000 do object[("a key that was added later, number %d "):format(i):rep(5)] = {} end
      pcall(setmetatable, object, { __mode = "kv" })
      cjson.encode(object)
      for key, value in pairs(object) do object[key] = value end
    end
  end,
}
