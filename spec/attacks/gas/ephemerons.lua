-- attack: chains of ephemeron tables, which the collector goes over once for each link.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local tables = {}
    for i = 1, 1500 do
      local ok, weak = pcall(setmetatable, {}, { __mode = "k" })
      if not ok then return end
      tables[i] = weak
    end
    for i = 1, 1499 do
      local key = {}
      tables[i][key] = tables[i + 1]
      tables[i + 1][tables] = key
    end
    local junk
    for i = 1, 200000 do junk = { i } end
    return junk and nil
  end,
}
