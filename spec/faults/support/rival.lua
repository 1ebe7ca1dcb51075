-- What rival_a.lua and rival_b.lua do: each writes its name.
local moonloop = require "moonloop"

local Thing = moonloop.kind("example.com/v1", "Thing")
local ConfigMap = moonloop.kind("v1", "ConfigMap")

local function same_name(map)
  return { { namespace = map.metadata.namespace, name = map.metadata.name } }
end

local modes = {}

function modes.status(_, _, name)
  return { status = { by = name } }
end

function modes.annotation(thing, ctx, name)
  assert(ctx.patch(thing, { metadata = { annotations = { ["example.com/by"] = name } } }))
end

function modes.other(thing, ctx, name)
  assert(ctx.apply {
    apiVersion = "v1", kind = "ConfigMap", metadata = { name = thing.metadata.name }, data = { by = name },
  })
end

-- Each writes a field of its own, and reads the other's.
function modes.apart(thing, _, name)
  return { status = { [name] = thing.spec.mode, seen = thing.status.a and thing.status.b and "both" or nil } }
end

local M = {}

function M.controller(name)
  return moonloop.controller {
    name = "rival-" .. name,
    reconciles = Thing,
    watches = { moonloop.watch(ConfigMap, same_name) },

    reconcile = function(thing, ctx)
      local mode = modes[thing.spec.mode]
      return mode and mode(thing, ctx, name)
    end,
  }
end

return M
