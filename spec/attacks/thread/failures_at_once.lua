-- attack: sixty objects that fail at once, again and again, with deep tracebacks.
-- expect: error
-- objects: 60
-- for: 1s
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local function deep(n)
      if n == 0 then error("no" .. ("."):rep(500)) end
      return (deep(n - 1))
    end
    deep(150)
  end,
}
