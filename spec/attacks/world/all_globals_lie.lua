-- attack: every global function is replaced by one that returns true, before the library is loaded.
-- expect: ok
local load = require
local names = {}
for name, value in pairs(_ENV) do
  if type(value) == "function" then
    names[#names + 1] = name
  end
end
for i = 1, #names do
  _ENV[names[i]] = function() return true end
end
local moonloop = load "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    return { status = { n = 1 }, requeue_after = "5s" }
  end,
}
