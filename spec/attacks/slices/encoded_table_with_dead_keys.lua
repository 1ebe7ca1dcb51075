-- attack: a table full of keys that were taken out again is encoded, sorted and gone through.
-- expect: ok
local cjson = require "cjson"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local t = {}
    for round = 1, 10 do
      for i = 1, 1000 do t[("key %d %d"):format(round, i)] = { i } end
      for i = 1, 1000 do t[("key %d %d"):format(round, i)] = nil end
    end
    t.last = "left"
    if cjson.encode(t) ~= '{"last":"left"}' then error "ESCAPED: dead keys" end
    local count = 0
    for _ in pairs(t) do count = count + 1 end
    if count ~= 1 then error "ESCAPED: dead keys" end
  end,
}
