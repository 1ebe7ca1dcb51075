-- attack: utf8.codes gets each value there is in each place, and bytes that are no UTF-8.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function(_, ctx)
    hostile.throw(utf8.codes)
    hostile.throw(utf8.codes, "a\u{e4}\u{20ac}\u{10ffff}")
    hostile.throw(utf8.codes, "\xff\xc3\x28\xe2\x82")
    hostile.throw_one(utf8.codes, "a\u{7fffffff}b", 1, -1)
    hostile.throw_one(function(text)
      for _ in utf8.codes(text) do ctx.now() end
    end)
  end,
}
