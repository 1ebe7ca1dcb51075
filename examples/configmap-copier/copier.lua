-- Gives a namespace a copy of a ConfigMap, kept equal to its source, when an annotation asks:
--   copier.moonloop.dev/from: "NAMESPACE/NAME"
local moonloop = require "moonloop"

local Namespace = moonloop.kind("v1", "Namespace")
local ConfigMap = moonloop.kind("v1", "ConfigMap")

local function wanted(namespace)
  return namespace.metadata.annotations["copier.moonloop.dev/from"]
end

return moonloop.controller {
  name = "configmap-copier",
  reconciles = Namespace,
  owns = { ConfigMap }, -- a copy that is changed or deleted is put right
  watches = {
    moonloop.watch(ConfigMap, function(source, ctx) -- a source that changes is copied again
      local key, namespaces = source.metadata.namespace .. "/" .. source.metadata.name, {}
      for _, namespace in ipairs(ctx.list(Namespace)) do
        if wanted(namespace) == key then
          namespaces[#namespaces + 1] = { name = namespace.metadata.name }
        end
      end
      return namespaces
    end),
  },

  reconcile = function(namespace, ctx)
    local from_namespace, from_name = (wanted(namespace) or ""):match("^([^/]+)/([^/]+)$")
    local source = from_name and ctx.get(ConfigMap, from_name, from_namespace)
    if not source or from_namespace == namespace.metadata.name then
      return -- nothing asked for, or not there yet: its creation brings us back
    end
    local copy = { name = from_name, namespace = namespace.metadata.name }
    assert(ctx.apply {
      apiVersion = "v1", kind = "ConfigMap", metadata = copy,
      data = source.data, binaryData = source.binaryData,
    })
  end,
}
