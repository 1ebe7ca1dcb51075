--- All objects as JSON text, with one revision counter; and the latest changes of each resource.
---
--- An *entry* is an object at one revision. Entries are never changed; a write makes a new one:
---   namespace ("" for none), name, uid, revision (integer)
---   text       the object's JSON without apiVersion and kind, which differ between versions; see store.object
---   labels     name → value, or nil
---   fields     path → value for field selectors, besides name and namespace; or nil
---   owners     the list metadata.ownerReferences, or nil
---   deleting   true when metadata.deletionTimestamp is set, else nil
---   as         of kinds that a webhook converts: the version in which `text` is; nil: the stored one
---   forms      of such kinds: other version → `text` as that version has it, as far as the webhook was asked;
---              form_fields: other version → `fields` of that text, if it has any. Only these come to an entry later;
---              see crd/conversion.lua
--- An *event* is one change: { type = "ADDED"|"MODIFIED"|"DELETED", revision, entry, previous (nil for ADDED), id,
--- lines }. `lines` belongs to watch.lua: the lines sent for this event, shared by all watches; nil before the first
--- watch needs them.
local collection = require "cluster.apiserver.collection"
local compaction = require "cluster.apiserver.compaction"
local host = require "cluster.host"
local status = require "cluster.apiserver.status"

local encode, decode = host.json.encode, host.json.decode

local M = {}
M.__index = M

--- Bytes of an object that are stored: --max-request-bytes of etcd.
M.SIZE_MAX = 1536 * 1024

-- How many changes of one resource are remembered for watches and lists of the past.
local HISTORY_MAX = 10000


--- An empty store.
--- @param options table? { history = changes remembered a resource, 10,000 when not given }
function M.new(options)
  return setmetatable({
    revision = 1,
    floor = 0,
    history = options and options.history or HISTORY_MAX,
    collections = {},
    subscribers = {},
    listeners = {}, -- id → the functions of those subscribers that want to hear of it; filled when first needed
    compaction = compaction.new(),
    is_passing = false,
    on_commit = nil,
  }, M)
end


--- The collection of the resource with that id; made if it is not there yet.
function M:collection(id)
  local found = self.collections[id]
  if not found then
    found = collection.new(id, self.history, self.floor)
    self.collections[id] = found
  end
  return found
end


--- The entry of that name, or nil. `namespace` is "" for resources without namespaces.
function M:get(id, namespace, name)
  local found = self.collections[id]
  return found and found:get(namespace, name)
end


-- The text of an entry of a kind that a webhook converts, in the version of `res`; nil if the webhook has to be asked.
local function form_of(res, entry)
  return entry.as == res.version and entry.text or entry.forms and entry.forms[res.version]
end


--- The fields for field selectors of an entry of a kind that a webhook converts, in the version of `res`. The entry
--- must have been made ready (versioned_storage.lua).
function M.fields(res, entry)
  if entry.as == res.version then
    return entry.fields
  end
  return entry.form_fields and entry.form_fields[res.version]
end


--- A table of the entry's object, the caller's own, as `res` serves it. An object that a webhook would have to convert
--- first comes as it was stored: callers that need only its metadata do not have to wait.
function M.object(res, entry)
  local convert, api_version = res.convert, res.api_version
  local text = entry.text
  if convert and convert.webhook then
    local form = form_of(res, entry)
    text, api_version = form or text, form and api_version or res.group .. "/" .. entry.as
  end
  local object = decode(text)
  if convert and not convert.webhook then
    convert.load(object)
  end
  object.apiVersion = api_version
  object.kind = res.kind
  return object
end


-- An entry's object without apiVersion and kind, in the version of `res`.
local function bare_text(res, entry)
  local convert = res.convert
  if not convert then
    return entry.text
  elseif convert.webhook then
    return assert(form_of(res, entry), "an object is to be shown that was not converted")
  end
  local object = decode(entry.text)
  convert.load(object)
  return encode(object)
end


--- The JSON text of an entry's object as `res` serves it.
function M.object_text(res, entry)
  return "{" .. res.head .. bare_text(res, entry):sub(2)
end


--- The same as an item of a list: built-in kinds do not say there what they are.
function M.item_text(res, entry)
  if res.item_head == "" then
    return bare_text(res, entry)
  end
  return "{" .. res.item_head .. bare_text(res, entry):sub(2)
end


-- The text of an object that is stored: its JSON without apiVersion and kind.
local function text_of(res, object)
  local convert = res.convert
  if convert and convert.save then
    object = host.json.copy(object)
    convert.save(object)
  end
  local version, kind = object.apiVersion, object.kind
  object.apiVersion, object.kind = nil, nil
  local text = encode(object)
  object.apiVersion, object.kind = version, kind
  return text
end


--- An object of `res` as another description of the same resource serves it; `object` stays as it is. Not for kinds
--- that a webhook converts.
function M.convert(object, res, other)
  return M.object(other, { text = text_of(res, object) })
end


--- Would etcd refuse an object? It has built-in kinds as protobuf, which escapes nothing.
--- @param text string as it would be stored here
function M.is_too_large(res, text)
  if #text <= M.SIZE_MAX or not res.builtin then
    return #text > M.SIZE_MAX
  end
  local _, escapes = text:gsub("\\.", "")
  local _, numbers = text:gsub("\\u", "")
  return #text - escapes - 4 * numbers > M.SIZE_MAX
end


-- The entry of `object` at `revision`, whose resourceVersion is set for it. `stored`: see M:create.
local function entry_of(res, object, revision, stored)
  local fields = res.strategy and res.strategy.fields
  local as = stored and stored.as or res.convert and res.convert.webhook and res.version or nil
  object = stored and stored.object or object
  local meta = object.metadata
  meta.resourceVersion = tostring(revision)
  local entry = {
    namespace = meta.namespace or "",
    name = meta.name,
    uid = meta.uid,
    revision = revision,
    text = text_of(res, object),
    labels = meta.labels,
  }
  -- There are many entries: what few of them have takes no room in the others.
  if as then
    entry.as = as
  end
  if fields then
    entry.fields = fields(object)
  end
  if meta.ownerReferences then
    entry.owners = meta.ownerReferences
  end
  if meta.deletionTimestamp then
    entry.deleting = true
  end
  return entry
end


local function listeners_of(self, id)
  local list = self.listeners[id]
  if not list then
    list = {}
    for _, subscriber in ipairs(self.subscribers) do
      if not subscriber.ids or subscriber.ids[id] then
        list[#list + 1] = subscriber.fn
      end
    end
    self.listeners[id] = list
  end
  return list
end


-- The change has happened: a subscriber that fails keeps nobody else from hearing of it, and fails no request.
local function publish(self, found, event)
  found:record(event)
  for _, listener in ipairs(listeners_of(self, event.id)) do
    local ok, why = xpcall(listener, debug.traceback, event)
    if not ok then
      host.log("error", "a listener of changes failed", { resource = event.id, name = event.entry.name, error = why })
    end
  end
end


-- Asks the keeper of the data (on_commit) first: a change happens only if it is kept.
local function commit(self, id, kind, entry, previous)
  if self.on_commit then
    local is_committed, why = self.on_commit {
      type = kind, id = id, revision = entry.revision, entry = entry, is_passing = self.is_passing,
    }
    if not is_committed then
      return nil, status.internal(why)
    end
  end
  self:oldest()
  self.revision = entry.revision
  local found = self:collection(id)
  if kind == "DELETED" then
    found:remove(entry)
  else
    found:put(entry)
  end
  publish(self, found, {
    type = kind, revision = entry.revision, id = id, entry = entry, previous = previous,
  })
  return entry
end


--- The oldest revision for which pages of lists, and lists of an exact version, are available.
function M:oldest()
  return self.compaction:oldest_at(self.revision)
end


--- Calls fn, whose changes need not be kept elsewhere: a restored store may be without them. It must not wait.
function M:passing(fn)
  self.is_passing = true
  local ok, why = pcall(fn)
  self.is_passing = false
  if not ok then
    error(why, 0)
  end
end


--- Stores a new object. Its name must be free. The object belongs to the store from now on: its resourceVersion is set,
--- and it must not be changed.
--- @param stored table|nil of kinds that a webhook converts: what is stored of it, { as = version, object = }; nil: the
---   object as it is
--- @return table|nil entry, or nil and a status when it could not be kept
function M:create(res, object, stored)
  local entry = entry_of(res, object, self.revision + 1, stored)
  if M.is_too_large(res, entry.text) then
    return nil, status.etcd_refuses()
  end
  return commit(self, res.id, "ADDED", entry, nil)
end


--- Replaces the object of `previous`, the current entry. As for create.
function M:update(res, previous, object, stored)
  local entry = entry_of(res, object, self.revision + 1, stored)
  if M.is_too_large(res, entry.text) then
    return nil, status.etcd_refuses()
  end
  return commit(self, res.id, "MODIFIED", entry, previous)
end


-- The last state of an entry that a webhook would have to convert: all but its metadata is as it was stored.
local function last_stored(res, previous, object)
  if not previous.as or previous.as == res.version then
    return nil
  end
  local last = decode(previous.text)
  local labels, annotations = last.metadata.labels, last.metadata.annotations
  last.metadata = host.json.copy(object.metadata)
  last.metadata.labels, last.metadata.annotations = labels, annotations
  return { as = previous.as, object = last }
end


--- Removes the object of `previous`, the current entry. `object` is its last state; the entry returned, which those who
--- watch see, has the revision of the removal.
function M:delete(res, previous, object)
  local entry = entry_of(res, object, self.revision + 1, last_stored(res, previous, object))
  return commit(self, res.id, "DELETED", entry, previous)
end


--- The text of an entry for the journal or a dump; it has the entry's version if that is not the stored one.
function M.kept_text(id, entry)
  local group = id:match "%.(.*)$"
  return entry.as and ('{"apiVersion":"%s/%s",'):format(group, entry.as) .. entry.text:sub(2) or entry.text
end


--- The ids of all resources that ever had an object, sorted.
function M:ids()
  local ids = {}
  for id in pairs(self.collections) do
    ids[#ids + 1] = id
  end
  table.sort(ids)
  return ids
end


--- All that is stored, for a later restore: a list of { id = of the resource, text = as kept_text has it }.
--- @return table records
--- @return integer revision
function M:dump()
  local records = {}
  for _, id in ipairs(self:ids()) do
    self.collections[id]:each(nil, nil, function(entry)
      records[#records + 1] = { id = id, text = M.kept_text(id, entry) }
    end)
  end
  return records, self.revision
end


--- Puts back what was kept, without telling anyone. For use before the server answers anybody.
--- @param records table as dump returns them  @param find function(id) -> description of the stored version, or nil
--- @return table left the records of resources that nobody describes
function M:restore(records, find)
  local unknown_records = {}
  for _, record in ipairs(records) do
    local res = find(record.id)
    if res then
      local object = assert(decode(record.text))
      local revision = math.tointeger(tonumber(object.metadata.resourceVersion))
      local as = object.apiVersion and object.apiVersion:match "[^/]*$" or res.stored and res.stored.version
      object.apiVersion = nil
      local stored = as and { as = as, object = object }
      self:collection(record.id):put(entry_of(res, object, revision, stored))
      self.revision = math.max(self.revision, revision)
    else
      unknown_records[#unknown_records + 1] = record
    end
  end
  return unknown_records
end


--- Ends restoring: history starts at `revision`, which is at least that of every object.
function M:start_at(revision)
  self.revision = math.max(self.revision, revision)
  self:compact(self.revision)
end


--- Calls fn(event) for each change, in order, right after it happened. `fn` must not write; what has to follow a change
--- it does later, through host.defer.
--- @param ids table|nil set of the resources that it wants to hear of; nil: all
function M:subscribe(fn, ids)
  self.subscribers[#self.subscribers + 1] = { fn = fn, ids = ids }
  self.listeners = {}
end


--- Forgets the changes up to `revision`: who watches from before it is told 410.
function M:compact(revision)
  self.floor = math.max(self.floor, revision)
  for _, found in pairs(self.collections) do
    found:compact(revision)
  end
end


return M
