-- attack: a file that is, by its size, larger than the memory of the machine, at the start.
-- expect: held
-- loads: at start
-- entry: huge huge.lua
return {}
