--- Stored objects, as a request's version has them.
---
--- Where a webhook converts a kind's objects (crd/conversion.lua), a request waits for it: before it shows an object of
--- another version, and before it stores one. Of all other kinds nobody waits for anything.
local await = require "cluster.apiserver.await"
local status = require "cluster.apiserver.status"
local store = require "cluster.apiserver.store"

local M = {}


local function webhook_of(request)
  local convert = request.res.convert
  return convert and convert.webhook
end


--- Waits until all of these entries can be shown. @return table|nil failure a status
function M.make_ready(request, entries)
  local webhook = webhook_of(request)
  if not webhook or webhook.is_ready(entries, request.res) then
    return nil
  end
  local why = await(request, webhook.make_ready, webhook, entries, request.res)
  return why and status.unknown(why)
end


--- The same for what may become more while the request waits. @param list function() that returns the entries as of now
function M.make_all_ready(request, list)
  local webhook, failure = webhook_of(request), nil
  while webhook and not failure do
    local entries = list()
    if webhook.is_ready(entries, request.res) then
      break
    end
    failure = M.make_ready(request, entries)
  end
  return failure
end


--- The entry that a request is about. @return table|nil entry, or nil and a status
function M.find(request)
  local res = request.res
  local entry = request.server.store:get(res.id, request.space, request.name)
  if not entry then
    return nil, status.not_found(res, request.name)
  end
  local failure = M.make_ready(request, { entry })
  if failure then
    return nil, failure
  end
  return entry
end


--- The object of an entry as JSON. @return string|nil text, or nil and a status
function M.text(request, entry)
  local failure = M.make_ready(request, { entry })
  if failure then
    return nil, failure
  end
  return store.object_text(request.res, entry)
end


--- An object of a write as another version of its resource has it; it stays as it is.
--- @param from table, to table descriptions of the resource
--- @return table|nil object, or nil and why its webhook cannot convert it
function M.convert(request, object, from, to)
  local webhook = webhook_of(request)
  if not webhook then
    return store.convert(object, from, to)
  end
  local list, why = await(request, webhook.convert, webhook, { object }, to)
  return list and list[1], why
end


--- The same; raises a status when it cannot be converted.
function M.convert_or_raise(request, object, from, to)
  local converted, why = M.convert(request, object, from, to)
  if not converted then
    error(status.internal(why), 0)
  end
  return converted
end


--- Converts an object to the version in which it is stored.
--- @return table|nil stored for Store:create and Store:update; nil: the object as it is
--- @return table|nil failure a status
function M.storable(request, object)
  local webhook = webhook_of(request)
  if not webhook then
    return nil
  end
  local stored, why = await(request, webhook.storable, webhook, object, request.res)
  return stored, not stored and status.unknown(why) or nil
end


return M
