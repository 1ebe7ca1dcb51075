-- attack: an object that was read, its metadata and its lists are marked as lists and sent back.
-- expect: held
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Part = moonloop.kind("attacks.test/v1", "Part")

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  owns = { Part },
  reconcile = function(_, ctx)
    local part = ctx.ensure { apiVersion = "attacks.test/v1", kind = "Part", metadata = { name = "p" }, spec = { a = {} } }
    pcall(moonloop.array, part)
    pcall(moonloop.array, part.metadata)
    pcall(moonloop.array, part.spec)
    pcall(moonloop.array, part.spec and part.spec.a)
    pcall(setmetatable, part, nil)
    pcall(setmetatable, part.metadata, { __index = error })
    pcall(ctx.patch, part, { spec = { b = 1 } })
    pcall(ctx.apply, part)
    pcall(ctx.delete, part)
  end,
}
