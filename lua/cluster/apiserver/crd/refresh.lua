--- Adapts stored objects to their changed CRD: the real server prunes and defaults objects when it reads them; this
--- one prunes and defaults the stored objects once for each change.
local default = require "cluster.apiserver.schema.default"
local host = require "cluster.host"
local prune = require "cluster.apiserver.schema.prune"
local resource = require "cluster.apiserver.crd.resource"


-- The entry as `res` has it, at the same revision.
local function renewed(entry, res)
  local copy = {}
  for key, value in pairs(entry) do
    copy[key] = value
  end
  local object = host.json.decode(entry.text)
  prune(res.schema, object)
  default(res.schema, object)
  copy.text = host.json.encode(object)
  copy.fields = res.strategy.fields and res.strategy.fields(object)
  return copy
end


--- Renews what is stored of a CRD's kind. Nobody is told: to clients nothing has been written.
--- @param kept table the store  @param crd table, source table as for resource.stored
return function(kept, crd, source)
  local res, list = resource.stored(crd, source), {}
  local collection = kept:collection(res.id)
  collection:each(nil, nil, function(entry)
    list[#list + 1] = renewed(entry, res)
  end)
  for _, entry in ipairs(list) do
    collection:put(entry)
  end
end
