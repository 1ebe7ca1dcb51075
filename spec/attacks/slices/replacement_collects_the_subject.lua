-- attack: the function of gsub makes garbage, while subject, pattern and captures are held by nobody else.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(thing)
    local function subject() return ("key=value;"):rep(500) .. tostring(thing.spec.n) end
    local function pattern() return "(%w+)" .. ("="):rep(1) .. "(%w+)" end
    local out = subject():gsub(pattern(), function(key, value)
      local junk
      for i = 1, 20 do junk = { junk, key .. i, value .. i } end
      return (value .. key):upper()
    end)
    if out:sub(1, 9) ~= "VALUEKEY;" then error "ESCAPED: another text" end
  end,
}
