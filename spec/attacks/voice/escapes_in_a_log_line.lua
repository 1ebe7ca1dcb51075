-- attack: a log line clears the screen, sets the title, writes a link and changes colours.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    ctx.log "\27[2J\27[H\27]0;FORGED\7\27]8;;http://x/\7link\27[31m"
    ctx.log "\u{9b}2J\u{90}x\u{9c}\u{85}\u{7f}\8\8\8"
    ctx.log "\0\1\2\3\4\5\6\7\11\12\14\15\16\127"
  end,
}
