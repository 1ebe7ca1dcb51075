--- Events as lines of JSON, in the form that the client wants: whole objects, their metadata, or rows of a table.
local host = require "cluster.host"
local respond = require "cluster.apiserver.respond"
local store = require "cluster.apiserver.store"

local M = {}

local OPEN = { ADDED = '{"type":"ADDED","object":{', MODIFIED = '{"type":"MODIFIED","object":{',
  DELETED = '{"type":"DELETED","object":{' }
local TYPES = { "ADDED", "MODIFIED", "DELETED", "LEFT" }

-- Weak: forms of a resource that is served no more go with it.
local plain_forms = setmetatable({}, { __mode = "k" })


local function keys_for(prefix)
  local keys = {}
  for _, kind in ipairs(TYPES) do
    keys[kind] = prefix .. kind
  end
  return keys
end


-- A decoded object, at `revision` when that is not its own.
local function object_at(res, entry, revision)
  local object = store.object(res, entry)
  if revision then
    object.metadata.resourceVersion = tostring(revision)
  end
  return object
end


local function event_line(kind, object)
  return '{"type":"' .. kind .. '","object":' .. host.json.encode(object) .. "}\n"
end


local function plain(res)
  local open = {}
  for kind, text in pairs(OPEN) do
    open[kind] = text .. (res.convert and "" or res.head)
  end
  local function form(kind, entry, revision)
    if revision then
      return event_line(kind, object_at(res, entry, revision))
    end
    if res.convert then
      return open[kind] .. store.object_text(res, entry):sub(2) .. "}\n"
    end
    return open[kind] .. entry.text:sub(2) .. "}\n"
  end
  local function bookmark(revision, first)
    return ('{"type":"BOOKMARK","object":{%s"metadata":{"resourceVersion":"%d"%s}}}\n'):format(res.head, revision,
      first and ',"annotations":{"k8s.io/initial-events-end":"true"}' or "")
  end
  return { form = form, bookmark = bookmark, keys = keys_for(res.version .. " ") }
end


local function bookmark_object(res, revision, first)
  local meta = { resourceVersion = tostring(revision) }
  if first then
    meta.annotations = { ["k8s.io/initial-events-end"] = "true" }
  end
  return { kind = res.kind, apiVersion = res.api_version, metadata = meta }
end


-- Column definitions stand in the first row that a client gets, and only there.
local function table_form(request)
  local has_sent_columns = false
  local function render(kind, object)
    local made = respond.table(request, host.json.array { object },
      { resourceVersion = object.metadata.resourceVersion })
    if has_sent_columns then
      made.columnDefinitions = host.json.null
    end
    has_sent_columns = true
    return event_line(kind, made)
  end
  local function form(kind, entry, revision)
    return render(kind, object_at(request.res, entry, revision))
  end
  local function bookmark(revision, first)
    return render("BOOKMARK", bookmark_object(request.res, revision, first))
  end
  return form, bookmark
end


local function transformed(request)
  local function form(kind, entry, revision)
    return event_line(kind, (respond.transform(request, object_at(request.res, entry, revision))))
  end
  local function bookmark(revision, first)
    return event_line("BOOKMARK", (respond.transform(request, bookmark_object(request.res, revision, first))))
  end
  return form, bookmark
end


-- Makes keys that no other watcher shares.
local private = 0


--- How the client of `request` is told: form, bookmark and keys of a watcher, see watch.lua.
function M.of(request)
  local res, as = request.res, request.accept.as
  if not as then
    local made = plain_forms[res]
    if not made then
      made = plain(res)
      plain_forms[res] = made
    end
    return made.form, made.bookmark, made.keys
  elseif as == "Table" then
    private = private + 1
    local form, bookmark = table_form(request)
    return form, bookmark, keys_for("table " .. private .. " ")
  end
  local form, bookmark = transformed(request)
  return form, bookmark, keys_for("metadata " .. res.version .. " " .. request.accept.version .. " ")
end


return M
