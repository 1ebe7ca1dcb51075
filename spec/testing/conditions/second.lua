-- A second controller of the same kind, which fails in mode "both": for conditions_test.lua.
local moonloop = require "moonloop"

return moonloop.controller {
  name = "second",
  reconciles = moonloop.kind("example.com/v1", "Work"),

  reconcile = function(work)
    assert(work.spec.mode ~= "both" and work.spec.mode ~= "second", "the second fails")
  end,
}
