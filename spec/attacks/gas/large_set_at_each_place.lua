-- attack: a set of sixteen thousand bytes, asked for each byte of a long text.
-- expect: limit cpu
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local text = ("a"):rep(100000)
    local set = "[" .. ("b-c"):rep(5000) .. "]"
    while true do text:find(set) end
  end,
}
