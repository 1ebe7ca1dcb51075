-- attack: numbers, which Lua takes for strings, stand for an API version and a kind.
-- expect: refused
local moonloop = require "moonloop"
local Kind = moonloop.kind(1, 2)
return moonloop.controller { name = "attack", reconciles = Kind, reconcile = function() end }
