-- attack: Thousands of patterns, each with as many states as it can have, held by iterators over them.
-- expect: held
-- for: 2s
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local regex = require "moonloop.regex"

local held = {}

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local text = ("abbabaaabb"):rep(100)
    for i = 1, 10000 do
      held[#held + 1] = regex.gmatch(text, "(?:a|b)*a(?:a|b){" .. i % 90 .. "}c|" .. i)
      held[#held]()
      pcall(regex.match, text, "(?:a{0,1000}){1}(?:b{0,1000}){1}" .. i)
    end
  end,
}
