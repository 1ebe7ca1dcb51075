-- attack: a metatable becomes weak after it was accepted, and the table is a status.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local meta = {}
    local weak = setmetatable({}, meta)
    meta.__mode = "kv"
    for i = 1, 5000 do weak[("a key that is longer than forty bytes, as most of them are, number %d"):format(i)] = {} end
    return { status = { weak = weak } }
  end,
}
