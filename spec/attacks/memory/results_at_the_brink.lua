-- attack: the memory is full but for a little when reconcile returns its status.
-- expect: held
-- objects: 30
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local held = {}

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(thing)
    local name = thing.metadata.name
    held[name] = ("x"):rep(500000 + #name)
    local t = {}
    for i = 1, 300 do t["k" .. i] = { i, { i } } end
    return { status = { t = t, text = ("x"):rep(300000) } }
  end,
}
