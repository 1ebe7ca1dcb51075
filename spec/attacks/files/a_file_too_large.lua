-- attack: one file has more than a megabyte; the others of its folder load.
-- expect: held
-- loads: at start
-- entry: fifo x.txt
local t = { @x70000{"many texts @I@",}@ }
return t
