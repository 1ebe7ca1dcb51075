-- attack: errors that are tables with a __tostring and a __name of their own, functions, nil and booleans.
-- expect: error
-- objects: 8
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local number = 0

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    number = number + 1
    local bad = "\n2026-01-01T00:00:00.000Z error host: FORGED\27[2J"
    local values = { setmetatable({}, { __tostring = function() return bad end }), setmetatable({}, { __name = bad }),
      function() end, true, moonloop.null, Thing, { bad }, [8] = ctx }
    error(values[number % 9])
  end,
}
