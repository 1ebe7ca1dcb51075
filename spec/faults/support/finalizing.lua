-- Keeps a page for each Thing in another namespace, and takes it away with it, in two steps.
local moonloop = require "moonloop"

local Thing = moonloop.kind("example.com/v1", "Thing")
local ConfigMap = moonloop.kind("v1", "ConfigMap")
local Secret = moonloop.kind("v1", "Secret")
local PAGES = "kube-public"

return moonloop.controller {
  name = "finalizing",
  reconciles = Thing,
  owns = { Secret },
  uses = { ConfigMap },

  reconcile = function(thing, ctx)
    if thing.spec.mode == "nothing" then
      return
    end
    assert(ctx.ensure { apiVersion = "v1", kind = "Secret", metadata = { name = thing.metadata.name } })
    assert(ctx.ensure {
      apiVersion = "v1", kind = "ConfigMap", metadata = { name = thing.metadata.name, namespace = PAGES },
    })
    return { status = { phase = "Ready" } }
  end,

  finalize = function(thing, ctx)
    local secret = ctx.get(Secret, thing.metadata.name)
    if secret then
      assert(ctx.delete(secret))
      return { status = { phase = "Going" }, requeue_after = 5 }
    end
    local page = ctx.get(ConfigMap, thing.metadata.name, PAGES)
    if page then
      assert(ctx.delete(page))
    end
  end,
}
