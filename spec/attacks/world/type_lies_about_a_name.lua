-- attack: type says that each name is a string, so that a table becomes the name of a controller.
-- expect: refused /name/
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
type = function() return "string" end
string.match = function(text) return text end

return moonloop.controller {
  reconciles = Thing,
  name = setmetatable({}, { __index = string, __len = function() return 1 end }),
  reconcile = function()
    return
  end,
}
