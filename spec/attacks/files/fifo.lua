-- attack: a FIFO that nobody writes to stands among the scripts.
-- expect: held
-- entry: fifo pipe.lua
return {}
