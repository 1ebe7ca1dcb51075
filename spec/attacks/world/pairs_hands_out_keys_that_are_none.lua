-- attack: pairs hands the library keys that are tables with metamethods of the script.
-- expect: refused
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local evil = setmetatable({}, { __tostring = function() return 5 end, __lt = function() return {} end,
  __eq = function() error "eq" end })
pairs = function() return function(_, key) return not key and evil or nil end end
tostring = function(value) return value end

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  unknown = 1,
  reconcile = function()
    return
  end,
}
