--- Adapts stored objects to their changed CRD: the real server prunes and defaults objects when it reads them; this
--- one prunes and defaults the stored objects once for each change.
local default = require "cluster.apiserver.schema.default"
local host = require "cluster.host"
local prune = require "cluster.apiserver.schema.prune"
local later = require "cluster.later"
local resource = later.module "cluster.apiserver.crd.resource"


-- The entry as `res` has it, at the same revision. The forms that a webhook made of it are dropped.
-- @param own table|nil the description of the version in which it is; nil: there is no such version any more
local function renewed(entry, res, own)
  local copy = {}
  for key, value in pairs(entry) do
    copy[key] = value
  end
  copy.forms = nil
  local object = host.json.decode(entry.text)
  if own then
    prune(own.schema, object)
    if not pcall(default, own.schema, object) then -- they are too many: it stays as it was
      object = host.json.decode(entry.text)
      prune(own.schema, object)
    end
  end
  copy.text = host.json.encode(object)
  copy.fields = res.strategy.fields and res.strategy.fields(object)
  return copy
end


--- Renews what is stored of a CRD's kind. Nobody is told: to clients nothing has been written.
--- @param storage table the store  @param crd table, source table as for resource.stored
--- @param as string|nil when a webhook converts its objects: the version of those that do not say in which they are
return function(storage, crd, source, as)
  local res, list, own = resource.stored(crd, source), {}, {}
  local collection = storage:collection(res.id)
  collection:each(nil, nil, function(entry)
    local version = as and (entry.as or as)
    if version and not own[version] then
      own[version] = resource.version(crd, source, version)
    end
    local copy = renewed(entry, res, version and own[version] or not version and res)
    copy.as = version
    list[#list + 1] = copy
  end)
  for _, entry in ipairs(list) do
    collection:put(entry)
  end
end
