-- attack: a link to /dev/random, at the start.
-- expect: held
-- loads: at start
-- entry: random random.lua
return {}
