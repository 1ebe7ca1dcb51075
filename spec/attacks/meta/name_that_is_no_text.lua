-- attack: __name is a number, a table, a megabyte, in the messages of each kind of wrong argument.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    for _, name in ipairs { 5, {}, ("n"):rep(1000000), "a\nb", true } do
      local t = setmetatable({}, { __name = name })
      pcall(string.rep, t, 1)
      pcall(string.format, "%d", t)
      pcall(table.concat, { t })
      pcall(math.floor, t)
      pcall(function() return t + 1 end)
      pcall(function() return t < t end)
      pcall(function() return t .. "x" end)
      pcall(ctx.get, t, t)
      pcall(ctx.log, t)
      pcall(moonloop.kind, t, t)
      tostring(t)
    end
  end,
}
