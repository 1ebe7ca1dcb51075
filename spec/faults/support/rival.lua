-- The code of rival_a.lua and rival_b.lua: each writes its name.
local moonloop = require "moonloop"

local Thing = moonloop.kind("example.com/v1", "Thing")
local ConfigMap = moonloop.kind("v1", "ConfigMap")
local Deployment = moonloop.kind("apps/v1", "Deployment")

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

-- On each change of a Deployment its controller writes its status, so a third one writes between the two.
function modes.deployment(thing, ctx, name)
  local deployment, labels = ctx.get(Deployment, thing.metadata.name), { app = thing.metadata.name }
  if deployment then
    local replicas = name == "a" and 2 or 0
    if deployment.spec.replicas ~= replicas then
      ctx.patch(deployment, { spec = { replicas = replicas } }) -- a Conflict: the change that it met calls again
    end
  elseif name == "a" then
    assert(ctx.create {
      apiVersion = "apps/v1", kind = "Deployment", metadata = { name = thing.metadata.name },
      spec = {
        replicas = 2, selector = { matchLabels = labels },
        template = { metadata = { labels = labels }, spec = { containers = { { name = "a", image = "a" } } } },
      },
    })
  end
end

-- One makes what the other one deletes.
function modes.existence(thing, ctx, name)
  local map = ctx.get(ConfigMap, thing.metadata.name)
  if name == "a" and not map then
    assert(ctx.create { apiVersion = "v1", kind = "ConfigMap", metadata = { name = thing.metadata.name } })
  elseif name == "b" and map then
    assert(ctx.delete(map))
  end
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
    watches = { moonloop.watch(ConfigMap, same_name), moonloop.watch(Deployment, same_name) },

    reconcile = function(thing, ctx)
      local mode = modes[thing.spec.mode]
      return mode and mode(thing, ctx, name)
    end,
  }
end

return M
