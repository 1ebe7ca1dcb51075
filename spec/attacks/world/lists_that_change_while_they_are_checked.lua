-- attack: owns is a list whose entries are kinds at the first look and numbers at the second.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local looks = 0
local Part = moonloop.kind("attacks.test/v1", "Part")
local list = setmetatable({}, { __index = function(_, i)
  looks = looks + 1
  if i == 1 then
    return looks < 2 and Part or 5
  end
end, __len = function() return 1 end })

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  owns = list,
  reconcile = function()
    return
  end,
}
