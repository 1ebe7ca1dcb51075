-- attack: an API version and a kind with newlines and escapes, which messages name.
-- expect: refused
local moonloop = require "moonloop"
local Kind = moonloop.kind("attacks.test/v1\n2026", "Thing\n2026-01-01T00:00:00.000Z error host: FORGED\27[2J")
return moonloop.controller { name = "attack", reconciles = Kind, reconcile = function() end }
