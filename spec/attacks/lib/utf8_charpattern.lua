-- attack: the pattern of utf8 is replaced, and used in each function of patterns.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    utf8.charpattern = "(%"
    hostile.throw_one(function(text)
      for _ in text:gmatch(utf8.charpattern) do ctx.now() end
    end)
    utf8.charpattern = "[\0-\x7F\xC2-\xFD][\x80-\xBF]*"
    hostile.throw_one(function(text) return text:gsub(utf8.charpattern, "x") end)
  end,
}
