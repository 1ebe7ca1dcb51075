-- attack: patterns of a megabyte: sets, captures, repetitions, classes, all that a pattern can be made of.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    local text = ("ab"):rep(1000)
    for _, piece in ipairs { "[a]", "(a)", "a-", "a*", "%a", "%f[a]", "%bab", "a?", ".", "[^a]", "%1", "()", "[%a-z]", "[]]" } do
      for _, times in ipairs { 30, 33, 1000, 16000 // #piece, 1000000 // #piece } do
        local pattern = piece:rep(times)
        pcall(string.find, text, pattern)
        pcall(string.gsub, "abab", pattern, "%0")
      end
    end
  end,
}
