-- attack: every function of string, table and math returns a function.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local function liar() return liar end
for _, library in ipairs { string, table, math, utf8 } do
  local names = {}
  for name in pairs(library) do
    names[#names + 1] = name
  end
  for i = 1, #names do
    library[names[i]] = liar
  end
end

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    return { status = { n = 1 }, requeue_after = "5s" }
  end,
}
