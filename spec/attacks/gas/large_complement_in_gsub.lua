-- attack: gsub with a complement of many classes over a long text.
-- expect: limit cpu
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local text = ("a"):rep(200000)
    while true do text:gsub("[^" .. ("%d%s%p"):rep(2700) .. "]", "") end
  end,
}
