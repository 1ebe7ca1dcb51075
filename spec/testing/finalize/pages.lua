-- Writes a page for each Thing into another namespace, and cleans up after it. The Thing's mode says what else it does
-- at the end.
local moonloop = require "moonloop"

local Thing = moonloop.kind("example.com/v1", "Thing")
local ConfigMap = moonloop.kind("v1", "ConfigMap")
local Secret = moonloop.kind("v1", "Secret")

local function page_of(thing)
  return thing.metadata.namespace .. "-" .. thing.metadata.name
end

local ends = {}

function ends.raise()
  error "no way to clean up"
end

function ends.later(_, ctx)
  return { status = { phase = "Going", at = ctx.now() }, requeue_after = "1m" }
end

function ends.wait()
  return { requeue_after = "1m" }
end

function ends.make(_, ctx)
  local _, err = ctx.ensure { apiVersion = "v1", kind = "Secret", metadata = { name = "last" } }
  return err and { status = { why = err.message } }
end

function ends.loop()
  while true do
    pcall(error)
  end
end

return moonloop.controller {
  name = "pages",
  reconciles = Thing,
  owns = { Secret },
  uses = { ConfigMap },

  reconcile = function(thing, ctx)
    if thing.spec.mode == "nothing" then
      return
    end
    assert(ctx.ensure {
      apiVersion = "v1", kind = "ConfigMap", metadata = { name = page_of(thing), namespace = "kube-public" },
    })
    return { status = { phase = "Ready" } }
  end,

  finalize = function(thing, ctx)
    local page = ctx.get(ConfigMap, page_of(thing), "kube-public")
    if page then
      assert(ctx.delete(page))
    end
    local last = ends[thing.spec.mode]
    return last and last(thing, ctx)
  end,
}
