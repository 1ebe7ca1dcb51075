-- attack: type says that a string is a table, so that the declaration of one is checked as if it were.
-- expect: refused /expected a table/
local moonloop = require "moonloop"
type = function() return "table" end
return moonloop.controller "attack"
