-- attack: a link to /dev/zero, which is never read to its end.
-- expect: held
-- entry: zero zero.lua
return {}
