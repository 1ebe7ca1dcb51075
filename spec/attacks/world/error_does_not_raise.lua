-- attack: error returns, so that what was refused goes on to the host.
-- expect: refused
local moonloop = require "moonloop"
error = function() end
local bad = moonloop.kind({}, 5)
return moonloop.controller { name = bad, reconciles = bad, reconcile = 1, owns = 5, uses = "x", when = 3 }
