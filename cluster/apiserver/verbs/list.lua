--- GET of a collection.
---
--- Rules: apiserver/pkg/storage/cacher/delegator.go and etcd3/store.go (the revision of a list, and its pages).
local continue = require "cluster.apiserver.verbs.continue"
local give_way = require "cluster.apiserver.give_way"
local host = require "cluster.host"
local options = require "cluster.apiserver.verbs.options"
local scope = require "cluster.apiserver.verbs.scope"
local status = require "cluster.apiserver.status"
local store = require "cluster.apiserver.store"
local versioned_storage = require "cluster.apiserver.versioned_storage"
local versions = require "cluster.apiserver.verbs.versions"

local TOO_OLD = "The resourceVersion for the provided list is too old."


-- The collection as it was at `revision`, or nil.
local function as_of(storage, collection, revision)
  return revision >= storage:oldest() and collection:at(revision) or nil
end


-- The collection to list, at the revision asked for, and that revision.
local function pick(request, settings)
  local storage = request.server.store
  local found = storage:collection(request.res.id)
  if settings.continue ~= "" then
    local token, failure = continue.decode(settings.continue)
    if not token then
      return nil, failure
    end
    if settings.version ~= "" and settings.version ~= "0" then
      return nil, status.bad_request("specifying resource version is not allowed when using continue")
    elseif token.revision < 0 then
      return found, storage.revision, token.from
    end
    local past = as_of(storage, found, token.revision)
    if not past then
      return nil, continue.expired(token)
    end
    return past, token.revision, token.from
  end
  local revision, failure = versions.read(settings.version, storage.revision)
  if not revision then
    return nil, failure
  end
  if settings.match ~= "Exact" then
    return found, storage.revision
  end
  local past = as_of(storage, found, revision)
  if not past then
    return nil, status.expired(TOO_OLD)
  end
  return past, revision
end


-- Puts the entries on the page into `entries`. @return boolean whether there are more, be it some that do not match
local function page(request, settings, collection, from, selector, entries)
  local count, more = 0, false
  local limited = settings.limit > 0 and (settings.version ~= "0" or settings.continue ~= "")
  local limit = limited and settings.limit or math.huge
  local match = not selector.empty and selector.match
  collection:each(scope.namespace(request), from, function(entry)
    if count >= limit then
      more = true
      return false
    elseif match and not match(entry) then
      return true
    end
    count = count + 1
    entries[count] = entry
  end)
  return more
end


-- All that a selector has to look at.
local function all_of(request, collection)
  local entries = {}
  collection:each(scope.namespace(request), nil, function(entry)
    entries[#entries + 1] = entry
  end)
  return entries
end


-- The objects as JSON. An object that a webhook has converted is used at once: a change of the definition drops it.
local function texts_of(request, entries)
  local convert, texts = request.res.convert, {}
  for i, entry in ipairs(entries) do
    texts[i] = store.item_text(request.res, entry)
    if not (convert and convert.webhook) then
      give_way(request)
    end
  end
  return texts
end


local function key_of(request, entry)
  if scope.namespace(request) or entry.namespace == "" then
    return entry.name
  end
  return entry.namespace .. "/" .. entry.name
end


-- The metadata of the list as JSON.
local function meta_text(request, revision, token, remaining_count)
  local parts = { ('"resourceVersion":"%d"'):format(revision) }
  if token or not request.res.builtin then
    parts[#parts + 1] = '"continue":' .. host.json.encode(token or "")
  end
  if remaining_count then
    parts[#parts + 1] = ('"remainingItemCount":%d'):format(remaining_count)
  end
  return '"metadata":{' .. table.concat(parts, ",") .. "}"
end


--- @param entries table|nil gets the entries that are listed
--- @return integer|nil code, string text; or nil and a status
return function(request, _, entries)
  local settings, failure = options.list(request, false)
  if not settings then
    return nil, failure
  end
  local selector
  selector, failure = scope.selector(request, settings)
  if not selector then
    return nil, failure
  end
  local collection, revision, from = pick(request, settings)
  if not collection then
    return nil, revision
  end
  failure = selector.by_form and versioned_storage.make_all_ready(request, function()
    return all_of(request, collection)
  end)
  if failure then
    return nil, failure
  end
  entries = entries or {}
  local more, token, remaining_count = page(request, settings, collection, from, selector, entries), nil, nil
  if more then
    local key = key_of(request, entries[#entries])
    token = continue.encode(revision, key)
    remaining_count = selector.empty and collection:count_after(scope.namespace(request), key) or nil
  end
  failure = versioned_storage.make_ready(request, entries)
  if failure then
    return nil, failure
  end
  return 200, request.res.list_head .. meta_text(request, revision, token, remaining_count) .. ',"items":['
    .. table.concat(texts_of(request, entries), ",") .. "]}"
end
