-- attack: a folder has the name of a script, at the start.
-- expect: held
-- loads: at start
-- entry: folder folder.lua
return {}
