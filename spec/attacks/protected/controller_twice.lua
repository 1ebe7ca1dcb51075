-- attack: the controller that a script returns is also what another file makes of it.
-- expect: held
return require "other"
-- also: other.lua
local moonloop = require "moonloop"
return moonloop.controller { name = "attack", reconciles = moonloop.kind("attacks.test/v1", "Thing"),
  reconcile = function() end }
