-- attack: a reconcile requires a file that came with the script, and one that did not.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    for _, name in ipairs { "one", "attack", "bystander", "nobody" } do
      if pcall(require, name) then error("ESCAPED: " .. name) end
    end
  end,
}
-- also: one.lua
local moonloop = require "moonloop"
return moonloop.controller { name = "attack-one", reconciles = moonloop.kind("attacks.test/v1", "Part"), reconcile = function() end }
