-- attack: every global is set to nil, the host's own code finds none.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local names = {}
for name in pairs(_ENV) do
  names[#names + 1] = name
end
for i = 1, #names do
  _ENV[names[i]] = nil
end

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    return { status = { n = 1 }, requeue_after = "5s" }
  end,
}
