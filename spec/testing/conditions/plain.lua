-- A script that fails for a kind without conditions: for conditions_test.lua.
local moonloop = require "moonloop"

return moonloop.controller {
  name = "plain",
  reconciles = moonloop.kind("example.com/v1", "Plain"),

  reconcile = function(plain, ctx)
    if plain.spec.mode == "boom" then
      error "boom"
    elseif plain.spec.mode == "invalid" then
      return ctx.invalid("spec.mode", "not that one", { status = { phase = "BAD" } })
    end
    return { status = { phase = "FINE" } }
  end,
}
