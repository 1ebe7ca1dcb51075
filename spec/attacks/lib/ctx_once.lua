-- attack: ctx.once gets each value there is, as each argument, as key, as function, and as what a function returns.
-- expect: held
-- may: secrets
-- objects: 60
-- for: 500ms
local hostile = require "hostile"
local moonloop = require "moonloop"
local Thing = moonloop.kind("attacks.test/v1", "Thing")
local Secret = moonloop.kind("v1", "Secret")
local step = 0

return moonloop.controller {
  name = "attack",
  reconciles = Thing,
  owns = { Secret },
  reconcile = function(_, ctx)
    step = step + 1
    local name = "s" .. step
    local function good() return "v" end
    local value = hostile.values[step % #hostile.values + 1]
    pcall(ctx.once)
    pcall(ctx.once, value)
    pcall(ctx.once, value, { a = good })
    pcall(ctx.once, name, value)
    pcall(ctx.once, name, { a = value })
    pcall(ctx.once, name, { a = good }, value)
    if value ~= value then
      pcall(ctx.once, name, { a = good })
    else
      pcall(ctx.once, name, { [value] = good })
    end
    pcall(ctx.once, name, { a = function() return value end })
    pcall(ctx.once, name, { a = function() error(value, 0) end })
    pcall(ctx.once, name, { a = function() return ctx.once(name, { a = good }).a end })
    pcall(ctx.once, name, setmetatable({}, { __pairs = error, __index = function() return good end }))
    ctx.once(name, { a = good })
    hostile.sane()
  end,
}
