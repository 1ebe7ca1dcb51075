-- attack: a script requires the bystander, and changes what it gets.
-- expect: held
local other = require "bystander"
pcall(function() other.name = "x" end)
pcall(setmetatable, other, {})
pcall(rawset, other, "reconcile", error)
return other
