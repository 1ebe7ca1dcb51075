-- attack: cluster.pure, which stands in for the host in plain Lua, is loaded by a script.
-- expect: refused /require/
local pure = require "cluster.pure"
return pure
