-- attack: a watch function fails with a line of the host's, and returns names with newlines.
-- expect: error
-- touches: 4
local moonloop = require "moonloop"
local bad = "\n2026-01-01T00:00:00.000Z error host: FORGED\27[2J"
local calls = 0
local function map()
  calls = calls + 1
  if calls % 2 == 0 then error(bad) end
  return { "default/a" .. bad }
end

return moonloop.controller {
  name = "attack",
  reconciles = moonloop.kind("attacks.test/v1", "Part"),
  watches = { moonloop.watch(moonloop.kind("attacks.test/v1", "Thing"), map) },
  reconcile = function() end,
}
