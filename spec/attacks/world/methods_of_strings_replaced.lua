-- attack: the table behind the methods of all strings hands out what the host formats with.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local seen
for _, name in ipairs { "format", "match", "rep", "sub", "gsub", "byte", "find" } do
  local real = string[name]
  string[name] = function(text, ...)
    seen = seen or text
    return real(text, ...)
  end
end
moonloop.watch(Thing, function() end, { "labels" })
pcall(moonloop.kind, "a", {})
pcall(moonloop.controller, { nam = 1 })

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    pcall(ctx.invalid, "x")
    if seen then error("ESCAPED: a text of the host: " .. seen) end
  end,
}
