-- attack: a link to itself has the name of a script.
-- expect: held
-- loads: at start
-- entry: loop link.lua
return {}
