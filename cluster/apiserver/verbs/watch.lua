--- GET of a collection with watch=true: the current objects, if requested, and then every change. Each event is a line
--- of the answer, or a message where the client asks for a WebSocket.
---
--- Rules: apiserver/pkg/endpoints/handlers/{get,watch}.go, apiserver/pkg/storage/cacher/{cacher,watch_cache}.go.
local host = require "cluster.host"
local hub = require "cluster.apiserver.watch"
local options = require "cluster.apiserver.verbs.options"
local scope = require "cluster.apiserver.verbs.scope"
local status = require "cluster.apiserver.status"
local later = require "cluster.later"
local streams = later.module "cluster.apiserver.streams"
local versioned_storage = require "cluster.apiserver.versioned_storage"
local versions = require "cluster.apiserver.verbs.versions"
local watch_encoder = require "cluster.apiserver.verbs.watch_encoder"

-- Seconds a watch lasts when the client does not say: this, and up to as much again.
local TIMEOUT_MIN = 1800

-- Seconds it may last at most, whatever the client says.
local TIMEOUT_MAX = 365 * 86400


-- The entries that the watch is about. @param is_every boolean? also those that its selector leaves out
local function present(request, watcher, is_every)
  local selector, entries = watcher.selector, {}
  request.server.store:collection(watcher.res.id):each(watcher.namespace, nil, function(entry)
    if is_every or selector.empty or selector.match(entry) then
      entries[#entries + 1] = entry
    end
  end)
  return entries
end


-- The entries that the events are about.
local function concerned(events)
  local entries = {}
  for _, event in ipairs(events or {}) do
    entries[#entries + 1] = event.entry
    entries[#entries + 1] = event.previous
  end
  return entries
end


-- Sends the objects there are, as if they had just come. Returns the bytes sent.
local function send_present(request, watcher)
  local form, reply = watcher.form, watcher.reply
  local chunk, sent = {}, 0
  for _, entry in ipairs(present(request, watcher)) do
    local line = form("ADDED", entry)
    chunk[#chunk + 1] = line
    sent = sent + #line
  end
  if #chunk > 0 then
    reply:write(table.concat(chunk))
  end
  return sent
end


-- Sends what has happened since. Returns the bytes sent.
local function send_past(events, watcher)
  local sent = 0
  for _, event in ipairs(events) do
    local line = hub.line(event, watcher)
    event.lines = nil
    if line then
      watcher.reply:write(line)
      sent = sent + #line
    end
  end
  return sent
end


local function timeout_of(settings)
  if settings.timeout and settings.timeout ~= 0 then
    return math.min(math.max(settings.timeout, 0), TIMEOUT_MAX)
  end
  return TIMEOUT_MIN + host.random(TIMEOUT_MIN)
end


-- Begins the answer. @return boolean false when the client gets no WebSocket; it has been told why
local function begin(request, watcher)
  if streams.is_websocket(request) then
    watcher.reply = streams.lines(request, watcher.reply)
  end
  if watcher.reply then
    watcher.reply:start(200, "application/json")
  end
  return watcher.reply ~= nil
end


local function send_too_old(reply, revision, floor)
  local failure = status.expired(("too old resource version: %d (%d)"):format(revision, floor))
  reply:write('{"type":"ERROR","object":' .. host.json.encode(failure) .. "}\n")
  reply:finish()
end


local function watcher_of(request, reply, settings, selector)
  local form, bookmark, keys = watch_encoder.of(request)
  return {
    res = request.res, namespace = scope.namespace(request), selector = selector, reply = reply,
    bookmarks = settings.bookmarks, timeout = timeout_of(settings),
    form = form, bookmark = bookmark, keys = keys, after = 0,
  }
end


-- From the present on. @return table|nil failure a status
local function start_now(request, watcher, settings)
  local failure = settings.initial and versioned_storage.make_all_ready(request, function()
    return present(request, watcher, watcher.selector.by_form)
  end)
  if failure then
    return failure
  end
  local revision = request.server.store.revision
  watcher.after = revision
  if not begin(request, watcher) then
    return
  end
  local sent = 0
  if settings.initial then
    sent = send_present(request, watcher)
    if settings.bookmarks then
      watcher.reply:write(watcher.bookmark(revision, true))
    end
  end
  request.server.hub:add(watcher, sent)
end


-- From a revision on that the client has seen. @return table|nil failure a status
local function start_after(request, watcher, revision)
  local storage = request.server.store
  local collection = storage:collection(watcher.res.id)
  local failure = versioned_storage.make_all_ready(request, function()
    return concerned(collection:since(revision))
  end)
  if failure then
    return failure
  end
  local events = collection:since(revision)
  if not begin(request, watcher) then
    return
  elseif not events then
    send_too_old(watcher.reply, revision, collection.floor)
    return
  end
  watcher.after = math.max(revision, storage.revision)
  request.server.hub:add(watcher, send_past(events, watcher))
end


--- Answers on `reply` itself. @return true, or nil and a status when nothing was sent yet
return function(request, reply)
  local settings, failure = options.list(request, true)
  if not settings then
    return nil, failure
  end
  local selector
  selector, failure = scope.selector(request, settings)
  if not selector then
    return nil, failure
  end
  local complaint = versions.complaint(settings.version)
  if complaint then
    return nil, status.bad_request(complaint)
  end
  local revision = math.tointeger(tonumber(settings.version)) or 0
  local current = request.server.store.revision
  if settings.initial and revision > current then
    return nil, status.too_large_revision(revision, current)
  end
  local watcher = watcher_of(request, reply, settings, selector)
  if revision == 0 or settings.initial then
    failure = start_now(request, watcher, settings)
  else
    failure = start_after(request, watcher, revision)
  end
  return not failure or nil, failure
end
