-- attack: nothing but garbage, so that the collector has most of the time.
-- expect: limit cpu
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local live = {}
    for i = 1, 50000 do live[i] = { i } end
    local junk
    while true do junk = { junk and 1, {}, {}, {} } end
  end,
}
