-- attack: a FIFO stands among the scripts when the host begins.
-- expect: held
-- loads: at start
-- entry: fifo pipe.lua
return {}
