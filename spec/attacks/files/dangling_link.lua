-- attack: a link to nothing has the name of a script, at the start.
-- expect: held
-- loads: at start
-- entry: dangling link.lua
return {}
