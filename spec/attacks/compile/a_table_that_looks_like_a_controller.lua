-- attack: a table with all that a controller has.
-- expect: refused
local moonloop = require "moonloop"
return { name = "attack", reconciles = moonloop.kind("attacks.test/v1", "Thing"), reconcile = function() end, max_concurrent = 1,
  owns = {}, uses = {}, watches = {} }
