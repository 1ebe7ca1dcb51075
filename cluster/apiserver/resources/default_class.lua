--- The class of a kind (StorageClass, IngressClass, PriorityClass) that is taken when an object names none.
---
--- Rules: kubernetes/pkg/volume/util/storageclass.go, plugin/pkg/admission/network/defaultingressclass/admission.go.
local store = require "cluster.apiserver.store"

local M = {}


--- All objects of a kind without namespaces.
--- @param ctx table as a strategy's hooks get it  @param id string "storageclasses.storage.k8s.io"
function M.all(ctx, id)
  local list, collection = {}, ctx.server.store.collections[id]
  local res = collection and ctx.server.registry:by_id(id)
  if res then
    collection:each(nil, nil, function(entry)
      list[#list + 1] = store.object(res, entry)
    end)
  end
  return list
end


--- The object of that name, or nil.
function M.get(ctx, id, name)
  local entry = ctx.server.store:get(id, "", name)
  return entry and store.object(ctx.server.registry:by_id(id), entry)
end


-- The youngest goes first, then the one whose name comes first.
local function goes_first(a, b)
  if a.metadata.creationTimestamp ~= b.metadata.creationTimestamp then
    return a.metadata.creationTimestamp > b.metadata.creationTimestamp
  end
  return a.metadata.name < b.metadata.name
end


--- The name of the class that one of the annotations calls the default, or nil; of several the youngest.
--- @return string|nil name
--- @return integer count how many there are
function M.annotated(ctx, id, annotations)
  local list = {}
  for _, class in ipairs(M.all(ctx, id)) do
    for _, annotation in ipairs(annotations) do
      if (class.metadata.annotations or {})[annotation] == "true" then
        list[#list + 1] = class
        break
      end
    end
  end
  table.sort(list, goes_first)
  return list[1] and list[1].metadata.name, #list
end


return M
