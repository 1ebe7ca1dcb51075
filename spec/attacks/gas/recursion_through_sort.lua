-- attack: the comparator of table.sort sorts.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local function compare(a, b)
      table.sort({ 3, 1, 2 }, compare)
      return a < b
    end
    pcall(table.sort, { 3, 1, 2 }, compare)
  end,
}
