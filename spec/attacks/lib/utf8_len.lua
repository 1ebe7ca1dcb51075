-- attack: utf8.len gets each value there is in each place, and bytes that are no UTF-8.
-- expect: ok
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    hostile.throw(utf8.len)
    hostile.throw(utf8.len, "a\u{e4}\u{20ac}\u{10ffff}")
    hostile.throw(utf8.len, "\xff\xc3\x28\xe2\x82")
    hostile.throw_one(utf8.len, "a\u{7fffffff}b", 1, -1)
  end,
}
