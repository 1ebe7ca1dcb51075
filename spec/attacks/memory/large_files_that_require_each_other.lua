-- attack: a file that requires others of many constants, and keeps them all.
-- expect: held
local a, b = require "one", require "two"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    return { status = { n = #a + #b } }
  end,
}
-- also: one.lua
return { @x20000{"text number @I@ of many",}@ }
-- also: two.lua
return { @x20000{"another text, number @I@",}@ }
