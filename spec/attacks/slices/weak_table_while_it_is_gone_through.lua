-- attack: pairs over a weak table, while the body makes garbage enough for the collector to clear it.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local weak = setmetatable({}, { __mode = "kv" })
    for i = 1, 2000 do
      weak["key number " .. i] = { i }
      weak[{ i }] = "value number " .. i
    end
    local sum = 0
    for key, value in pairs(weak) do
      local junk = {}
      for i = 1, 50 do junk[i] = { key, value, tostring(i) .. "junk" } end
      sum = sum + #tostring(key) + #junk
    end
    return { status = { sum = sum } }
  end,
}
