-- attack: a function of when returns what is neither true nor false, and changes what it is given.
-- expect: held
-- touches: 12
-- for: 900ms
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local calls = 0
local answers = { [0] = "yes", 0, {}, moonloop.null, function() end, 0 / 0, "" }
local function when(old, new)
  calls = calls + 1
  old.metadata, new.spec = nil, old
  return answers[calls % 8]
end

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  when = when,
  reconcile = function()
    return
  end,
}
