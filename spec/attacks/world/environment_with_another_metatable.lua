-- attack: the metatable of the environment is replaced, taken away, asked for.
-- expect: ok
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  reconcile = function()
    if getmetatable(_ENV) then error "ESCAPED: the metatable of the environment" end
    if pcall(setmetatable, _ENV, nil) then error "ESCAPED: the environment has no metatable" end
    if pcall(setmetatable, _ENV, {}) then error "ESCAPED: the environment has another metatable" end
    rawset(_ENV, "smuggled", 1)
  end,
}
