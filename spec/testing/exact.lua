-- A script whose maps are exactly what it says. A Thing with the mode "child data,metadata.labels" returns a ConfigMap
-- of its name with these two exact; "apply data" applies one by ctx.apply; "child data none" leaves its data out.
local moonloop = require "moonloop"

local Thing = moonloop.kind("example.com/v1", "Thing")
local ConfigMap = moonloop.kind("v1", "ConfigMap")
local Deployment = moonloop.kind("apps/v1", "Deployment")


local function config(thing, has_data)
  return {
    apiVersion = "v1", kind = "ConfigMap", metadata = { name = thing.metadata.name, labels = { ours = "yes" } },
    data = has_data and { ours = "yes" } or nil,
  }
end


local function deployment(thing)
  local container = { name = "c", image = "busybox" }
  return {
    apiVersion = "apps/v1", kind = "Deployment", metadata = { name = thing.metadata.name },
    spec = { selector = { matchLabels = { app = "x" } }, template = {
      metadata = { labels = { app = "x" }, annotations = { ours = "yes" } }, spec = { containers = { container } },
    } },
  }
end


return moonloop.controller {
  name = "thing",
  reconciles = Thing,
  owns = { ConfigMap, Deployment },

  reconcile = function(thing, ctx)
    local how, paths, what = thing.spec.mode:match "^(%a+) (%S+) ?(.*)$"
    local object = what == "pods" and deployment(thing) or config(thing, what ~= "none")
    for path in paths:gmatch "[^,]+" do
      moonloop.exact(object, path)
    end
    if how == "child" then
      return { children = { moonloop.recreate(object) } }
    end
    local applied = assert(ctx.apply(object))
    return { status = { text = applied.data and applied.data.theirs or "none" } }
  end,
}
