-- attack: __gc is put into a metatable after it was accepted, by rawset, and by another table's __index.
-- expect: ok
local ran = false
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local meta = {}
    for _ = 1, 100 do setmetatable({}, meta) end
    meta.__gc = function() ran = true end
    rawset(meta, "__gc", meta.__gc)
    pcall(setmetatable, {}, meta)
    pcall(setmetatable, {}, setmetatable({}, { __index = { __gc = meta.__gc } }))
    local junk
    for i = 1, 20000 do junk = { junk and i } end
    if ran then error "ESCAPED: a finalizer ran" end
  end,
}
