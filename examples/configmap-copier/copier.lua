-- Gives a namespace a copy of a ConfigMap, kept equal to its source, when an annotation asks:
--   copier.moonloop.dev/from: "NAMESPACE/NAME"
-- A ConfigMap of that name that somebody else made is left alone.
local moonloop = require "moonloop"

local Namespace = moonloop.kind("v1", "Namespace")
local ConfigMap = moonloop.kind("v1", "ConfigMap")

local function wanted(namespace)
  return namespace.metadata.annotations["copier.moonloop.dev/from"]
end

-- The patch that removes keys of the copy which its source does not have; nil: there are none.
local function extra_keys(copy, source)
  local changes
  for _, field in ipairs { "data", "binaryData" } do
    local given = source[field] or {}
    for key in pairs(copy[field] or {}) do
      if given[key] == nil then
        changes = changes or {}
        changes[field] = changes[field] or {}
        changes[field][key] = moonloop.null
      end
    end
  end
  return changes
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
    local copy = assert(ctx.apply {
      apiVersion = "v1", kind = "ConfigMap", metadata = { name = from_name, namespace = namespace.metadata.name },
      data = source.data, binaryData = source.binaryData,
    })
    local extra = extra_keys(copy, source)
    if extra then
      ctx.patch(copy, extra)
    end
  end,
}
