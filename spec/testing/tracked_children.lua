-- A script whose children cannot all be owned: a Thing whose mode is "2 red" has a ConfigMap beside it, two in the
-- namespace elsewhere and a ClusterRole. With "2 later" it is refused for the first minute.
local moonloop = require "moonloop"

local Thing = moonloop.kind("example.com/v1", "Thing")
local ConfigMap = moonloop.kind("v1", "ConfigMap")
local ClusterRole = moonloop.kind("rbac.authorization.k8s.io/v1", "ClusterRole")

local function config(name, namespace, text)
  return {
    apiVersion = "v1", kind = "ConfigMap", metadata = { name = name, namespace = namespace }, data = { text = text },
  }
end


local first -- when "later" was asked for


return moonloop.controller {
  name = "thing",
  reconciles = Thing,
  owns = { ConfigMap, ClusterRole },

  reconcile = function(thing, ctx)
    local size, text = thing.spec.mode:match "^(%d+) (%a+)$"
    local name = thing.metadata.name
    if text == "later" then
      first = first or ctx.now()
      if ctx.now() < first + 60 then
        return ctx.terminal "not yet"
      end
    end
    local children = { config(name, nil, text) }
    for index = 1, tonumber(size) do
      children[#children + 1] = config(("%s-%d"):format(name, index), "elsewhere", text)
    end
    if tonumber(size) > 0 then
      children[#children + 1] = {
        apiVersion = ClusterRole.apiVersion, kind = "ClusterRole", metadata = { name = name },
        rules = { { apiGroups = { "" }, resources = { "pods" }, verbs = { "get" } } },
      }
    end
    return { children = children, status = { size = tonumber(size), text = text } }
  end,

  finalize = function() end,
}
