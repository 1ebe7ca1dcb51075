-- attack: setmetatable keeps the metatable by which the library knows its own, and marks a table with it.
-- expect: refused /watches/
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local real, mark = setmetatable, nil
setmetatable = function(t, meta)
  mark = meta
  return real(t, meta)
end
moonloop.watch(Thing, function() end)
setmetatable = real
if not mark then
  error "watches: nothing came out"
end
mark.__metatable = nil
local forged = real({ kind = 7, map = "x", when = { 1, 2 } }, mark)
return moonloop.controller { name = "attack", reconciles = Thing, watches = { forged }, reconcile = function() end }
