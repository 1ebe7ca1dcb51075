-- attack: a script declares a kind whose version leads to another place of the API.
-- expect: refused
local moonloop = require "moonloop"
return moonloop.controller { name = "attack", reconciles = moonloop.kind("attacks.test/..", "Thing"), reconcile = function() end }
