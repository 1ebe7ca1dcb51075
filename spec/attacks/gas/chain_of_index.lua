-- attack: a chain of __index tables, as long as Lua allows, asked again and again.
-- expect: limit cpu
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local last = {}
    for _ = 1, 1900 do last = setmetatable({}, { __index = last }) end
    local n = 0
    while true do n = n + (last.x or 1) end
  end,
}
