--- Turns the result of a verb into the answer to the client, in the form that the client asked for.
local compress = require "cluster.apiserver.compress"
local field = require "cluster.apiserver.field"
local give_way = require "cluster.apiserver.give_way"
local host = require "cluster.host"
local negotiation = require "cluster.apiserver.negotiation"
local pretty = require "cluster.apiserver.pretty"
local status = require "cluster.apiserver.status"
local tables = require "cluster.apiserver.tables"

local M = {}

local JSON = "application/json"
local NO_HEADERS = {}

-- Characters of all warnings of an answer; and of each of them, when that is not enough for all.
local WARNINGS_MAX = 4096
local WARNING_MAX = 256


local PEOPLE = { curl = true, Wget = true, Mozilla = true }


-- Browsers and command lines get JSON that can be read, as the server does it.
local function wants_pretty(request)
  local value = request.query.pretty
  if value then
    return value[1] ~= "false" and value[1] ~= "0"
  end
  local agent = request.headers["user-agent"]
  return agent ~= nil and PEOPLE[agent:match("^(%a+)/")] == true
end


local function headers_of(request, failure)
  local warnings = request.warnings
  local delay = failure and failure.details and failure.details.retryAfterSeconds
  if not warnings and not delay then
    return NO_HEADERS
  end
  local values = {}
  for i, warning in ipairs(warnings and warnings.list or {}) do
    values[i] = '299 - "' .. warning:gsub('["\\]', "\\%0") .. '"'
  end
  return { Warning = values[1] and table.concat(values, ", "), ["Retry-After"] = delay and tostring(delay) }
end


-- A function that lets others have their turn, for loops over the objects of an answer.
local function in_turns(request)
  return function()
    give_way(request)
  end
end


-- Sends an answer in its form. `failure`: the Status it says, if it is one.
local function send(request, reply, code, media, text, failure)
  compress.send(request, reply, code, media, text, headers_of(request, failure), give_way)
end


-- The first `most` characters of a text.
local function cut(text, most)
  local stop = utf8.len(text) and utf8.offset(text, most + 1) or most + 1
  return stop and text:sub(1, stop - 1) or text
end


-- Adds a warning if it fits behind those there are.
local function add_warning(warnings, text)
  local length = utf8.len(text) or #text
  local fits = warnings.length + length <= WARNINGS_MAX
  if fits then
    warnings.list[#warnings.list + 1] = text
    warnings.length = warnings.length + length
  end
  return fits
end


-- Cuts each of the warnings short, so that more of them fit.
local function shorten_warnings(warnings)
  local list = warnings.list
  warnings.list, warnings.length, warnings.short = {}, 0, true
  for _, text in ipairs(list) do
    add_warning(warnings, cut(text, WARNING_MAX))
  end
end


--- Adds a warning to the answer, once. Warnings beyond the limit are left out.
--- Rule: apiserver/pkg/endpoints/filters/warning.go.
function M.warn(request, warning)
  local warnings = request.warnings or { list = {}, length = 0, sent = {}, short = false }
  request.warnings = warnings
  if warnings.sent[warning] then
    return
  end
  warnings.sent[warning] = true
  if not warnings.short then
    if add_warning(warnings, warning) then
      return
    end
    shorten_warnings(warnings)
  end
  add_warning(warnings, cut(warning, WARNING_MAX))
end


--- Sends JSON text as it is. `failure`: the Status it says, if it is one.
function M.text(request, reply, code, text, failure)
  if wants_pretty(request) then
    text = pretty.json(text, in_turns(request))
  else
    text = text .. "\n"
  end
  send(request, reply, code, JSON, text, failure)
end


--- Sends plain text, as for paths that are about no resource.
function M.plain(reply, code, text)
  reply:send(code, "text/plain; charset=utf-8", text, { ["X-Content-Type-Options"] = "nosniff" })
end


--- Sends a Status, as YAML to those who want that.
function M.failure(request, reply, failure)
  local form = request.accept or negotiation.read(request.headers.accept)
  if form and form.format == "yaml" then
    return send(request, reply, failure.code, "application/yaml", pretty.yaml(failure), failure)
  end
  M.text(request, reply, failure.code, host.json.encode(failure), failure)
end


-- metadata of an object or list as a PartialObjectMetadata of that version.
local function partial(object, version)
  return { kind = "PartialObjectMetadata", apiVersion = "meta.k8s.io/" .. version, metadata = object.metadata }
end


local function partial_list(request, list)
  local items, version = host.json.array {}, request.accept.version
  for i, item in ipairs(list.items) do
    items[i] = partial(item, version)
    give_way(request)
  end
  local meta = {
    resourceVersion = list.metadata.resourceVersion, remainingItemCount = list.metadata.remainingItemCount,
  }
  if list.metadata.continue ~= "" then
    meta.continue = list.metadata.continue
  end
  return { kind = "PartialObjectMetadataList", apiVersion = "meta.k8s.io/" .. version, metadata = meta, items = items }
end


local INCLUDE = { [""] = "Metadata", Metadata = "Metadata", None = "None", Object = "Object" }


--- Reads from the query how much of each object a table's rows have. nil and a status if the word is unknown.
function M.include_of(request)
  local value = request.query.includeObject and request.query.includeObject[1] or ""
  local include = INCLUDE[value]
  if not include then
    return nil, status.bad_request(("Unable to convert to Table as requested: includeObject: Invalid value: %s: must "
      .. "be 'Metadata', 'Object', 'None', or empty"):format(field.quote(value)))
  end
  return include
end


--- Objects of one kind as a Table of that version. A part whose objects are of another kind than its resource, as a
--- Scale is, describes that beforehand: request.printed.
--- @param list_meta table metadata of the list
--- @param after_row function|nil called after each row; nil for what is told within somebody else's request
function M.table(request, objects, list_meta, after_row)
  local include, failure = M.include_of(request)
  if not include then
    return nil, failure
  end
  return tables.render(request.printed or request.res, objects, {
    include = include, list_meta = list_meta, now = host.now(), version = request.accept.version,
    after_row = after_row,
  })
end


-- The name of the server's own type for a kind: "*core.Secret".
local function go_type(res, kind)
  if not res.builtin then
    return kind == res.list_kind and "*unstructured.UnstructuredList" or "*unstructured.Unstructured"
  end
  return "*" .. (res.group == "" and "core" or res.group:match("^[^.]+")) .. "." .. kind
end


local function not_acceptable(message, details)
  local failure = status.not_acceptable {}
  failure.message, failure.details = message, details
  return failure
end


--- One object in the form asked for. @return table|nil, or nil and a status
function M.transform(request, object)
  local form = request.accept
  if form.as == "PartialObjectMetadata" then
    return partial(object, form.version)
  elseif form.as == "Table" then
    return M.table(request, host.json.array { object }, { resourceVersion = object.metadata.resourceVersion })
  end
  return nil, not_acceptable("you requested PartialObjectMetadataList, but the requested object is not a list ("
    .. go_type(request.res, request.res.kind) .. ")")
end


local function transform_list(request, list)
  local form = request.accept
  if form.as == "PartialObjectMetadataList" then
    return partial_list(request, list)
  elseif form.as == "Table" then
    local meta = { resourceVersion = list.metadata.resourceVersion,
      remainingItemCount = list.metadata.remainingItemCount }
    if list.metadata.continue ~= "" then
      meta.continue = list.metadata.continue
    end
    return M.table(request, list.items, meta, in_turns(request))
  end
  return nil, not_acceptable("you requested PartialObjectMetadata, but the requested object is a list ("
    .. go_type(request.res, request.res.list_kind) .. ")")
end


--- Sends what a verb returned: an object, a list or a Status, as JSON text.
function M.answer(request, reply, code, text)
  local form = request.accept
  if not form.as and form.format == "json" then
    return M.text(request, reply, code, text)
  end
  local value = assert(host.json.decode(text))
  if form.as and value.kind ~= "Status" then
    local transform = value.items and value.kind == request.res.list_kind and transform_list or M.transform
    local failure
    value, failure = transform(request, value)
    if not value then
      return M.failure(request, reply, failure)
    end
  end
  if form.format == "yaml" then
    return send(request, reply, code, "application/yaml", pretty.yaml(value, in_turns(request)))
  end
  M.text(request, reply, code, host.json.encode(value))
end


local TABLELESS = { binding = true, eviction = true, token = true } -- of subresources
local MEDIA = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
local STREAMS = MEDIA .. ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"


local function unavailable(available)
  return not_acceptable("406: Not Acceptable\n\nAvailable representations: " .. available, {})
end


local function refusal(request, why)
  local is_custom = request.res and not request.res.builtin -- nobody makes protobuf of these
  if why == "protobuf" and not is_custom then
    return status.not_implemented("answers in application/vnd.kubernetes.protobuf")
  elseif why == "form" or is_custom then
    return status.not_acceptable { MEDIA }
  end
  local collection = request.res and not request.name and request.method == "GET"
  return unavailable(collection and STREAMS or MEDIA)
end


local function refuse(reply, failure)
  reply:send(failure.code, JSON, pretty.json(host.json.encode(failure)), NO_HEADERS)
  return false
end


-- True if the answer has no columns, because objects of its kind are not kept.
local function is_tableless(request)
  local strategy = request.res and request.res.strategy
  return strategy and strategy.review or request.subresource and TABLELESS[request.subresource]
end


--- Reads which form the request wants; answers itself if that is not available.
function M.negotiate(request, reply)
  local form, why = negotiation.read(request.headers.accept, is_tableless(request))
  if form then
    request.accept = form
    return true
  end
  return refuse(reply, refusal(request, why))
end


--- The same for what is made in JSON only.
function M.negotiate_json(request, reply)
  local form = negotiation.read(request.headers.accept)
  return form and form.format == "json" or refuse(reply, unavailable(JSON))
end


return M
