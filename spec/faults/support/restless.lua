-- A script that does, on each run, what nobody should: it writes what time it is. Where, says the mode of its object.
local moonloop = require "moonloop"

local Thing = moonloop.kind("example.com/v1", "Thing")
local ConfigMap = moonloop.kind("v1", "ConfigMap")
local Deployment = moonloop.kind("apps/v1", "Deployment")
local Pod = moonloop.kind("v1", "Pod")

local modes = {}

function modes.status(_, ctx)
  return { status = { at = tostring(ctx.now()) .. math.random() } }
end

function modes.status_and_again(thing, ctx)
  local result = modes.status(thing, ctx)
  result.requeue_after = 0
  return result
end

function modes.annotation(thing, ctx)
  assert(ctx.patch(thing, { metadata = { annotations = { ["example.com/at"] = tostring(math.random()) } } }))
end

function modes.child(thing, ctx)
  assert(ctx.apply {
    apiVersion = "v1", kind = "ConfigMap", metadata = { name = thing.metadata.name },
    data = { at = tostring(math.random()) },
  })
end

local function deployment_of(name, replicas, annotations)
  local labels = { app = name }
  return {
    apiVersion = "apps/v1", kind = "Deployment", metadata = { name = name },
    spec = {
      replicas = replicas, selector = { matchLabels = labels },
      template = {
        metadata = { labels = labels, annotations = annotations },
        spec = { containers = { { name = "a", image = "a" } } },
      },
    },
  }
end

-- Its own status, which follows the Deployment's, rolls out the Deployment.
function modes.rollout(thing, ctx)
  local name = thing.metadata.name
  local deployment = ctx.get(Deployment, name)
  local seen = deployment and deployment.status or {}
  return {
    children = { deployment_of(name, 2, { ["example.com/of"] = thing.metadata.resourceVersion }) },
    status = { ready = seen.readyReplicas, updated = seen.updatedReplicas },
  }
end

local function set_shared(ctx, by)
  local map = ctx.get(ConfigMap, "shared")
  if map and map.data.by ~= by then
    ctx.patch(map, { data = { by = by } }) -- a Conflict: the change that it met calls again
  end
end

-- The objects of this mode patch one ConfigMap.
function modes.shared(thing, ctx)
  set_shared(ctx, thing.metadata.name)
end

-- It changes back each change of another client.
function modes.back(_, ctx)
  set_shared(ctx, "restless")
end

-- The same in its status.
function modes.status_back()
  return { status = { by = "restless" } }
end

-- It waits for pods and writes their progress into its status, an annotation and a ConfigMap.
function modes.progress(thing, ctx)
  local name, ready = thing.metadata.name, 0
  local pods = ctx.list(Pod, { labels = { app = name } })
  for _, pod in ipairs(pods) do
    ready = ready + (pod.status.phase == "Running" and 1 or 0)
  end
  local text = ready .. "/" .. #pods
  assert(ctx.patch(thing, { metadata = { annotations = { ["example.com/ready"] = text } } }))
  return {
    children = {
      deployment_of(name, 100, { ["example.com/version"] = thing.metadata.labels and thing.metadata.labels.version }),
      { apiVersion = "v1", kind = "ConfigMap", metadata = { name = name }, data = { ready = text } },
    },
    status = { ready = ready },
  }
end

-- A counter, when its time has come.
function modes.counter(thing, ctx)
  local annotations, now = thing.metadata.annotations or {}, ctx.now()
  local last = tonumber(annotations["example.com/at"]) or 0
  if now - last >= 1 then
    assert(ctx.patch(thing, { metadata = { annotations = { ["example.com/at"] = tostring(now) } } }))
    last = now
  end
  return { requeue_after = last + 1 - now }
end

-- Goes on from what it has done, as a script may: thirty children, one in each run, then nothing more.
function modes.steps(thing, ctx)
  local made = ctx.list(ConfigMap, { owned = true })
  if #made < 30 then
    assert(ctx.create {
      apiVersion = "v1", kind = "ConfigMap", metadata = { name = ("%s-%d"):format(thing.metadata.name, #made) },
    })
  end
end

local function same_name(pod)
  return { { namespace = pod.metadata.namespace, name = pod.metadata.labels and pod.metadata.labels.app or "-" } }
end

local function all_that_share(map)
  local keys = {}
  for _, name in ipairs(map.metadata.name == "shared" and { "a", "b", "c" } or {}) do
    keys[#keys + 1] = { namespace = map.metadata.namespace, name = name }
  end
  return keys
end

return moonloop.controller {
  name = "restless",
  reconciles = Thing,
  owns = { ConfigMap, Deployment },
  watches = { moonloop.watch(Pod, same_name), moonloop.watch(ConfigMap, all_that_share) },

  reconcile = function(thing, ctx)
    local mode = modes[thing.spec.mode]
    return mode and mode(thing, ctx)
  end,
}
