-- attack: the file raises a table with a __tostring that loops.
-- expect: refused
error(setmetatable({}, { __tostring = function() while true do end end }))
