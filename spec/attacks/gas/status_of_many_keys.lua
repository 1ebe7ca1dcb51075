-- attack: a status of forty thousand keys, which the host compares with what is there.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local status = {}
    for i = 1, 40000 do status[("key%d"):format(i * 7919)] = i end
    return { status = status }
  end,
}
