-- A script that does, on each run, what nobody should: it writes what time it is. Where, says the mode of its object.
local moonloop = require "moonloop"

local Thing = moonloop.kind("example.com/v1", "Thing")
local ConfigMap = moonloop.kind("v1", "ConfigMap")

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

-- Goes on from what it has done, as a script may: thirty children, one in each run, then nothing more.
function modes.steps(thing, ctx)
  local made = ctx.list(ConfigMap, { owned = true })
  if #made < 30 then
    assert(ctx.create {
      apiVersion = "v1", kind = "ConfigMap", metadata = { name = ("%s-%d"):format(thing.metadata.name, #made) },
    })
  end
end

return moonloop.controller {
  name = "restless",
  reconciles = Thing,
  owns = { ConfigMap },

  reconcile = function(thing, ctx)
    local mode = modes[thing.spec.mode]
    return mode and mode(thing, ctx)
  end,
}
