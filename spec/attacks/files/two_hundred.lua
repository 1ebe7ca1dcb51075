-- attack: two hundred harmless scripts come at once.
-- expect: held
-- copies: 200
-- for: 600ms
-- memory: 300
local moonloop = require "moonloop"
return moonloop.controller { name = "attack-@N@", reconciles = moonloop.kind("attacks.test/v1", "Thing"), reconcile = function() end }
