-- A script that fails for a built-in kind: for conditions_test.lua.
local moonloop = require "moonloop"

return moonloop.controller {
  name = "pods",
  reconciles = moonloop.kind("v1", "Pod"),

  reconcile = function()
    error "boom"
  end,
}
