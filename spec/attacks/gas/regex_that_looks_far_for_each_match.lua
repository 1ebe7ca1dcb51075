-- attack: For each of many matches the pattern looks at the rest of the text, as a second way might match.
-- expect: limit cpu
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local regex = require "moonloop.regex"

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local text = ("x"):rep(200000)
    regex.gsub(text, "x+y|x", "$0$0")
    for _ in regex.gmatch(text, "x+y|x") do end
  end,
}
