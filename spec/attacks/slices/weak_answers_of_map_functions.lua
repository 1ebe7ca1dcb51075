-- attack: a watch function returns a weak list of names that nobody else holds.
-- expect: held
-- touches: 6
local moonloop = require "moonloop"
local function map()
  local names = setmetatable({}, { __mode = "kv" })
  for i = 1, 3000 do names[i] = { namespace = "default", name = ("name-that-is-longer-than-forty-bytes-number-%d"):format(i) } end
  return names
end

return moonloop.controller {
  name = "attack",
  reconciles = moonloop.kind("attacks.test/v1", "Part"),
  watches = { moonloop.watch(moonloop.kind("attacks.test/v1", "Thing"), map) },
  reconcile = function() end,
}
