-- attack: the table of string functions is emptied, so that methods that the library calls are not there.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local names = {}
for name in pairs(string) do
  names[#names + 1] = name
end
for _, name in ipairs(names) do
  string[name] = nil
end

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    return { requeue_after = "5s" }
  end,
}
