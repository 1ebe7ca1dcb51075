-- attack: thirty-two kinds whose names are as long as they may be, and longer.
-- expect: refused
local moonloop = require "moonloop"
local uses = {}
for i = 1, 31 do uses[i] = moonloop.kind(("g"):rep(200) .. ".test/v" .. i, ("K"):rep(250)) end
uses[32] = moonloop.kind(("g"):rep(1000000) .. "/v1", "K")
return moonloop.controller { name = "attack", reconciles = uses[1], uses = uses, reconcile = function() end }
