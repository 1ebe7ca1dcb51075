-- attack: cluster.testing.moonloop, which a test gets as moonloop, is loaded by a script.
-- expect: refused /require/
local moonloop = require "cluster.testing.moonloop"
return moonloop
