-- attack: a label selector and a field selector with newlines and escapes.
-- expect: refused
local moonloop = require "moonloop"
local Kind = moonloop.kind("attacks.test/v1", "Thing", { labels = "a=b\n2026-01-01T00:00:00.000Z error host: FORGED\27[2J" })
return moonloop.controller { name = "attack", reconciles = Kind, reconcile = function() end }
