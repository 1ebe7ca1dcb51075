-- attack: a field selector that the server refuses, with newlines which the log repeats.
-- expect: held
local moonloop = require "moonloop"
local Kind = moonloop.kind("attacks.test/v1", "Thing", { fields = "spec.\27[2Jx\n2026=FORGED" })
return moonloop.controller { name = "attack", reconciles = Kind, reconcile = function() end }
