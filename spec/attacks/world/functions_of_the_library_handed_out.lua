-- attack: each function that the library might call hands its arguments to the script; is a primitive among them?
-- expect: ok
local mine = {}
local spies = { "type", "ipairs", "pairs", "next", "tostring", "getmetatable", "setmetatable", "rawequal", "rawget",
  "rawset", "rawlen", "select", "tonumber", "assert", "pcall" }
local caught
for _, name in ipairs(spies) do
  local real = _ENV[name]
  mine[name] = real
  _ENV[name] = function(...)
    for i = 1, mine.select("#", ...) do
      local value = (mine.select(i, ...))
      if mine.type(value) == "table" and (mine.rawget(value, "is_kind") or mine.rawget(value, "controller") and
        mine.rawget(value, "getmetatable")) then
        caught = name
      end
    end
    return real(...)
  end
end
for name, real in mine.pairs(mine) do
  mine[name] = real
end
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local part = moonloop.kind("attacks.test/v1", "Part", { labels = "a=b" })
moonloop.watch(part, function() end, { "labels" })

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  owns = { part },
  reconcile = function(_, ctx)
    mine.pcall(ctx.invalid, 1, 2)
    if caught then error("ESCAPED: a primitive of the host by way of " .. caught) end
    return { requeue_after = "1s" }
  end,
}
