-- attack: variables to be closed whose __close loops, so that the end of the time begins others.
-- expect: limit cpu
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local forever = setmetatable({}, { __close = function() while true do end end })
    local function nest(n)
      local x <close> = forever -- luacheck: ignore
      if n > 0 then return (nest(n - 1)) end
      while true do end
    end
    nest(50)
  end,
}
