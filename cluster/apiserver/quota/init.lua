--- Holds requests to the ResourceQuotas of their namespace: what would exceed one is refused, what fits is charged.
---
--- The status of a quota is what counts, as on a real server: controllers/resourcequota.lua writes it anew when
--- something goes, a request adds what it uses. Check, write and charge are one step, so of two requests for the last
--- unit one wins.
--- Rules and wordings: apiserver/pkg/admission/plugin/resourcequota/controller.go.
local check = require "cluster.apiserver.resources.check"
local evaluator = require "cluster.apiserver.quota.evaluator"
local host = require "cluster.host"
local lists = require "cluster.apiserver.resources.resource_lists"
local scopes = require "cluster.apiserver.quota.scopes"
local status = require "cluster.apiserver.status"

local M = {}

local NONE = {}
local RES = { api_version = "v1", kind = "ResourceQuota" }
local API_SERVER = {
  user = { name = "system:apiserver", groups = { "system:masters", "system:authenticated" } },
  user_agent = "kube-apiserver",
}


-- True if a request changes what is used. Most updates do not: of most resources only the number of objects counts.
local function is_charged(request, object, old)
  local id, part = request.res.id, request.subresource
  if not old then
    return not part
  elseif id == "pods" then
    return part == "resize" or not part and scopes.is_terminating(object) ~= scopes.is_terminating(old)
  end
  return not part and (id == "services" or id == "persistentvolumeclaims")
end


local function quotas_of(request)
  local quotas, store = {}, request.server.store
  store:collection("resourcequotas"):each(request.namespace, nil, function(entry)
    quotas[#quotas + 1] = store.object(RES, entry)
  end)
  return quotas
end


-- The names of `hard` that the quota's status does not count yet.
local function uncounted(quota, tracked)
  local used = quota.status.used or NONE
  for name in pairs(tracked) do
    if not used[name] then
      return table.concat(check.sorted_keys(tracked), ",")
    end
  end
end


local function is_nothing(list)
  for _, text in pairs(list) do
    if lists.compare(text, "0") ~= 0 then
      return false
    end
  end
  return true
end


-- Adds a request to what is used of a quota. @return table|nil used; or nil and why it is refused
local function charged(quota, usage)
  local hard, used = quota.status.hard, quota.status.used or NONE
  local requested, exceeded = lists.mask(usage, hard), {}
  local sum = lists.add(host.json.copy(used), requested)
  for name in pairs(requested) do
    exceeded[name] = lists.compare(sum[name], hard[name]) > 0 or nil
  end
  if next(exceeded) then
    return nil, ("exceeded quota: %s, requested: %s, used: %s, limited: %s"):format(quota.metadata.name,
      lists.text(lists.mask(requested, exceeded)), lists.text(lists.mask(used, exceeded)),
      lists.text(lists.mask(hard, exceeded)))
  end
  return sum
end


-- The quotas that a request is about. @return list; or nil and why it is refused
local function concerned(quotas, id, object)
  local list = {}
  for _, quota in ipairs(quotas) do
    local tracked = evaluator.tracked(id, quota.status.hard)
    if next(tracked) and scopes.meet(quota.spec, id, object) then
      local missing = id == "pods" and evaluator.missing(object, tracked)
      if missing then
        return nil, ("failed quota: %s: %s"):format(quota.metadata.name, missing)
      end
      local unknown = uncounted(quota, tracked)
      if unknown then
        return nil, ("status unknown for quota: %s, resources: %s"):format(quota.metadata.name, unknown)
      end
      list[#list + 1] = quota
    end
  end
  return list
end


-- Writes what is used by now.
local function save(server, quotas)
  for _, quota in ipairs(quotas) do
    local path = server.registry.path(server.registry:find("", "v1", "resourcequotas"), quota.metadata.namespace,
      quota.metadata.name, "status")
    local code, answer = server:call("PUT", path, quota, API_SERVER)
    if code >= 300 then
      host.log("warn", "a quota was not charged", { quota = quota.metadata.name, error = answer.message })
    end
  end
end


--- Checks that a valid object fits the quotas of its namespace.
---
--- @param old table|nil what it replaces
--- @return function|nil charge notes what it uses: to be called once it is stored; nil: there is nothing to note
--- @return table|nil failure a Status when it is refused
function M.check(request, object, old)
  local res = request.res
  local collection = res.namespaced and request.server.store.collections.resourcequotas
  if not collection or collection:size(request.namespace) == 0 or not is_charged(request, object, old) then
    return nil
  end
  local function refuse(why)
    return nil, status.forbidden(res, object.metadata.name, why)
  end
  local quotas, why = concerned(quotas_of(request), res.id, object)
  if not quotas then
    return refuse(why)
  end
  local usage, changed = evaluator.of(res.id, object), {}
  local before = old and evaluator.of(res.id, old)
  for _, quota in ipairs(quotas) do
    local more = before and scopes.meet(quota.spec, res.id, old) and lists.minus(usage, before) or usage
    if not is_nothing(more) then
      local used
      used, why = charged(quota, more)
      if not used then
        return refuse(why)
      elseif not host.json.equal(used, quota.status.used) then
        quota.status.used = used
        changed[#changed + 1] = quota
      end
    end
  end
  return #changed > 0 and function()
    save(request.server, changed)
  end or nil
end


return M
