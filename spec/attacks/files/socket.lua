-- attack: a socket has the name of a script, at the start.
-- expect: held
-- loads: at start
-- entry: socket socket.lua
return {}
