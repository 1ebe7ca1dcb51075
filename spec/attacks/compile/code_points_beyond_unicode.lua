-- attack: a text of code points that Unicode does not have is compiled, kept and stored.
-- expect: error /UTF-8/
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local text = "\u{7FFFFFFF}\u{D800}\u{110000}"

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    return { status = { text = text } }
  end,
}
