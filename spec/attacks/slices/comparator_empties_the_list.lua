-- attack: the comparator of table.sort empties and refills the list that is sorted.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local list = {}
    for i = 1, 2000 do list[i] = ("text %d"):format(i * 7919 % 2000) end
    local calls = 0
    pcall(table.sort, list, function(a, b)
      calls = calls + 1
      if calls % 10 == 0 then
        for i = 1, #list do list[i] = nil end
        for i = 1, 100 do list[i] = ("other %d"):format(i) end
      end
      return tostring(a) < tostring(b)
    end)
  end,
}
