-- A script that does what its object's mode says: what thing_test.lua tries the test harness with.
local moonloop = require "moonloop"

local Thing = moonloop.kind("example.com/v1", "Thing")
local Secret = moonloop.kind("v1", "Secret")
local ConfigMap = moonloop.kind("v1", "ConfigMap")

local function secret(value)
  return { apiVersion = "v1", kind = "Secret", metadata = { name = "s" }, stringData = { v = value } }
end

local modes = {}

function modes.make(_, ctx)
  assert(ctx.ensure(secret "1"))
  return { status = { made = true } }
end

function modes.tick(_, ctx)
  return { status = { at = ctx.now() }, requeue_at = (ctx.now() // 60 + 1) * 60 }
end

function modes.restless(thing, ctx)
  ctx.get(ConfigMap, thing.metadata.name)
  return { requeue_after = 0 }
end

function modes.undeclared(_, ctx)
  ctx.get(moonloop.kind("v1", ("Nodes"):sub(1, 4)), "n") -- not in the text: such a script does not load
end

function modes.invalid(_, ctx)
  return ctx.invalid("spec.mode", "no mode to be in")
end

return moonloop.controller {
  name = "thing",
  reconciles = Thing,
  owns = { Secret },
  uses = { ConfigMap },

  reconcile = function(thing, ctx)
    local mode = modes[thing.spec.mode]
    return mode and mode(thing, ctx)
  end,
}
