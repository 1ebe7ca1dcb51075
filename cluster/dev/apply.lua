--- Applies manifests as `kubectl apply --server-side` would: CRDs first, each document separately.
local event_printer = require "cluster.dev.event_printer"
local host = require "cluster.host"
local register = require "cluster.register"

local M = {}

local MANAGER = "moonloop-dev"
local WHO = { content_type = "application/apply-patch+yaml", user_agent = MANAGER }

-- Kinds that others need to be there.
local FIRST = { CustomResourceDefinition = 1, Namespace = 2 }
local LAST = 3

local KIND_PATIENCE = 1 -- seconds, before somebody is told that a kind is missing
local SCRIPT_PATIENCE = 10 -- seconds; a busy machine needs some for a script, and a script may not come at all

local applied_texts = {} -- path of a file → its text when it was applied last
local failed = {} -- path of a file → set of its documents that could not be applied
local waiting = {} -- documents whose kinds are not there, or the webhooks of these
local expected = {} -- "group/Kind" → true: its script has webhooks, and is not live yet


-- Adds a value of a file, or the members of a list; `place` has where it stands.
local function add_value(documents, place, value)
  local document = { where = place.where, line = place.line, order = #documents }
  if type(value) ~= "table" or host.json.is_array(value) then
    document.wrong = "a manifest must be a mapping"
  elseif type(value.kind) == "string" and value.kind:match "List$" and type(value.items) == "table" then
    for _, item in ipairs(value.items) do
      add_value(documents, place, item)
    end
    return
  elseif next(value) then
    document.object = value
  else
    return
  end
  documents[#documents + 1] = document
end


local function add_documents(documents, where, text)
  for _, read in ipairs(host.yaml.documents(text)) do
    if read.wrong then
      local line, wrong = read.wrong:match "^line (%d+): (.*)$"
      documents[#documents + 1] = { where = where, line = line or read.line, wrong = wrong or read.wrong,
        order = #documents }
    else
      add_value(documents, { where = where, line = read.line }, read.value)
    end
  end
end


-- Nothing of an earlier text of a file is waited for, or counts as failed.
local function forget(where)
  local others = {}
  for _, document in ipairs(waiting) do
    others[#others + 1] = document.where ~= where and document or nil
  end
  waiting = others
  failed[where] = nil
end


-- The documents of the files that have changed, in the order in which they have to be applied.
local function documents_of(path, files)
  local documents = {}
  for _, file in ipairs(files) do
    local where = path:match "[^/]*$" == file.name and path or path:gsub("/*$", "/") .. file.name
    if applied_texts[where] ~= file.text then
      applied_texts[where] = file.text
      forget(where)
      add_documents(documents, where, file.text)
    end
  end
  table.sort(documents, function(a, b)
    local first, second = FIRST[(a.object or {}).kind] or LAST, FIRST[(b.object or {}).kind] or LAST
    if first ~= second then
      return first < second
    end
    return a.order < b.order
  end)
  return documents
end


-- @return string|nil path of the object, or nil and why it has none  @return table|nil res, nil for an unknown kind
local function path_of(server, object)
  local meta = object.metadata
  if type(object.apiVersion) ~= "string" or type(object.kind) ~= "string" then
    return nil, "apiVersion and kind must be set"
  elseif type(meta) ~= "table" or type(meta.name) ~= "string" then
    return nil, ("%s: metadata.name must be set"):format(object.kind)
  end
  local res = server.registry:of(object.apiVersion, object.kind)
  if not res then
    return nil, nil
  end
  return server.registry.path(res, res.namespaced and (meta.namespace or "default"), meta.name), res
end


local function key_of(object)
  return ("%s/%s"):format(object.apiVersion:match "^(.*)/" or "", object.kind)
end


local function fail(document, why)
  failed[document.where] = failed[document.where] or {}
  failed[document.where][document] = true
  event_printer.problem(document.where, ("line %s: %s"):format(document.line, why))
end


-- It is applied, perhaps after it waited too long.
local function note_success(document)
  local others = failed[document.where]
  if others then
    others[document] = nil
    failed[document.where] = next(others) and others
  end
end


-- Applies a document. @return boolean false when its kind is not there yet
local function apply(server, document)
  if document.wrong then
    fail(document, document.wrong)
    return true
  end
  local object = document.object
  local path, res = path_of(server, object)
  if not path then
    if res then
      fail(document, res)
    end
    return res ~= nil
  elseif expected[key_of(object)] then
    return false
  end
  if register.conversion(path) and type(object.spec) == "table" then
    object.spec.conversion = register.conversion(path) -- the manifest's says how a cluster calls the operator
  end
  local before, old = server:call("GET", path)
  local code, answer = server:call("PATCH", path .. "?force=true&fieldManager=" .. MANAGER, object, WHO)
  if code >= 300 then
    fail(document, answer.message)
    return true
  end
  note_success(document)
  local is_same = before == 200 and old.metadata.resourceVersion == answer.metadata.resourceVersion
  event_printer.print_applied(res, answer, code == 201 and "created" or is_same and "unchanged" or "configured")
  return true
end


-- Tries those again whose kinds were not there.
local function try_waiting(server)
  local tried = waiting
  waiting = {}
  for _, document in ipairs(tried) do
    if not apply(server, document) then
      waiting[#waiting + 1] = document
    end
  end
end


-- Says later that the document still waits, if its kind is not there then.
local function complain(document)
  host.after(KIND_PATIENCE, function()
    for _, other in ipairs(waiting) do
      if other == document and not expected[key_of(document.object)] then
        fail(document, ("the server has no kind %s in %s yet; it is applied when its CustomResourceDefinition is")
          :format(document.object.kind, document.object.apiVersion))
      end
    end
  end)
end


--- Applies what has changed in these files since the last call. One that fails does not stop the others; one whose
--- kind is not there waits for it.
--- @param path string as it was given: a file or a folder  @param files table { { name =, text = }, … }
function M.files(server, path, files)
  for _, document in ipairs(documents_of(path, files)) do
    if not apply(server, document) then
      waiting[#waiting + 1] = document
      complain(document)
    end
  end
end


--- How many files could not be applied whole when they were tried last.
function M.failed()
  local count = 0
  for _ in pairs(failed) do
    count = count + 1
  end
  return count
end


--- Returns true if a document still waits and may yet be applied by itself.
function M.is_busy()
  for _, document in ipairs(waiting) do
    if not (failed[document.where] or {})[document] then
      return true
    end
  end
  return false
end


--- Objects of these kinds wait for the webhooks of their script, for SCRIPT_PATIENCE.
--- @param kinds table list of "group/Kind"
function M.expect(server, kinds)
  for _, key in ipairs(kinds) do
    expected[key] = true
  end
  host.after(SCRIPT_PATIENCE, function()
    expected = {}
    try_waiting(server)
    for _, document in ipairs(waiting) do
      complain(document)
    end
  end)
end


--- The webhooks of these kinds are there.
function M.kinds_registered(server, kinds)
  for _, key in ipairs(kinds) do
    expected[key] = nil
  end
  if waiting[1] then
    host.after(0, function()
      try_waiting(server)
    end)
  end
end


--- Watches for kinds that come.
function M.start(server)
  server.store:subscribe(function(event)
    if event.id == "customresourcedefinitions.apiextensions.k8s.io" and waiting[1] then
      host.after(0, function()
        try_waiting(server)
      end)
    end
  end)
end


return M
