-- attack: the iterator of gmatch is kept while what it goes over is garbage but for it.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local iterators = {}
    for i = 1, 200 do iterators[i] = (("word%d "):format(i)):rep(50):gmatch("%a" .. "+%d+") end
    for round = 1, 3 do
      local junk = {}
      for i = 1, 3000 do junk[i] = ("junk %d %d"):format(round, i) end
      for i = 1, 200 do
        if iterators[i]() ~= ("word%d"):format(i) then error "ESCAPED: another word" end
      end
    end
  end,
}
