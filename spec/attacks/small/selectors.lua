-- attack: label and field selectors that are no selectors.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    for _, selector in ipairs { "&watch=1", "a in (", "a in ()", "((((((", ",,,,", "!", "!!a", "a=b=c", "a==b==c", "a notin", "\0",
      "a=\0", ("a,"):rep(500), ("a"):rep(1025), "a=b\n", "a>1", " ", "in in (in)", ("("):rep(1000), "a in (b,,)", "=", "a=%" } do
      pcall(moonloop.kind, "attacks.test/v1", "Thing", { labels = selector })
      pcall(moonloop.kind, "attacks.test/v1", "Thing", { fields = selector })
    end
  end,
}
