--- Parses a request: its resource, object, verb and query.
---
--- Rules: apiserver/pkg/endpoints/request/requestinfo.go.
local M = {}

local VERBS = { POST = "create", GET = "get", HEAD = "get", PUT = "update", PATCH = "patch", DELETE = "delete" }

-- After a namespace's name these name a part of the namespace, everything else a resource within it.
local NAMESPACE_PARTS = { status = true, finalize = true }

-- Paths that start with these before the resource are an old way to say the verb.
local PATH_VERBS = { proxy = true, watch = true }

local NO_QUERY = setmetatable({}, { __newindex = function() error("an empty query is shared", 2) end })


--- Undoes %-encoding; `plus` says whether "+" is a space, as in queries.
local function unescape(text, plus)
  if plus then
    text = text:gsub("+", " ")
  end
  if not text:find("%", 1, true) then
    return text
  end
  return (text:gsub("%%(%x%x)", function(hex)
    return string.char(tonumber(hex, 16))
  end))
end


--- The query as name → list of values, in the order they came.
--- @param text string what follows "?", still encoded
function M.parse_query(text)
  if text == "" then
    return NO_QUERY
  end
  local query = {}
  for pair in text:gmatch("[^&]+") do
    local name, value = pair:match("^([^=]*)=?(.*)$")
    name = unescape(name, true)
    local values = query[name]
    if values then
      values[#values + 1] = unescape(value, true)
    else
      query[name] = { unescape(value, true) }
    end
  end
  return query
end


-- The parts of a decoded path; none when one of them is empty, for no path has such parts, but for what a proxy passes
-- on.
local function split(path)
  local parts, count = {}, 0
  local empty = path:find("//", 1, true)
  if empty and not path:sub(1, empty):find "^/api/v1/.*/proxy/" then
    return parts, count
  end
  for part in path:gmatch("[^/]+") do
    count = count + 1
    parts[count] = part
  end
  return parts, count
end


-- `i` is the index of the first part after the version.
local function read_resource(request, parts, i)
  if PATH_VERBS[parts[i]] and parts[i + 1] then
    request.path_verb = parts[i]
    request.verb = parts[i]
    i = i + 1
  end
  if parts[i] == "namespaces" and parts[i + 1] then
    request.namespace = parts[i + 1]
    if parts[i + 2] and not NAMESPACE_PARTS[parts[i + 2]] then
      i = i + 2
    end
  end
  request.resource = parts[i]
  request.name = parts[i + 1]
  request.subresource = parts[i + 2]
  request.rest = parts[i + 3] and table.concat(parts, "/", i + 3) or nil
end


-- Go's strconv would refuse other words; a request that watches is told by these alone.
local function wants_watch(query)
  local values = query.watch
  if not values then
    return false
  end
  local word = values[1]:lower()
  return word ~= "false" and word ~= "0"
end


local function settle_verb(request)
  if request.path_verb then
    return
  end
  local verb = VERBS[request.method] or ""
  if not request.name then
    if verb == "get" then
      verb = wants_watch(request.query) and "watch" or "list"
    elseif verb == "delete" then
      verb = "deletecollection"
    end
  end
  request.verb = verb
end


--- Takes a request apart.
---
--- @param raw table { method =, path = (encoded), query = (encoded), headers =, body =, client = }
--- @return table request the fields of `raw`, with `path` decoded, and
---   query       name → list of values; raw_query: as it came
---   is_resource whether it is about a resource; when it is:
---     group ("" for core), version, resource, namespace, name, subresource, rest (what follows the subresource),
---     each nil when it is not there, and verb: get, list, watch, create, update, patch, delete, deletecollection,
---     "" for a method that has none
function M.parse(raw)
  local path = unescape(raw.path)
  local parts, count = split(path)
  local request = {
    method = raw.method,
    path = path,
    parts = parts,
    query = M.parse_query(raw.query or ""),
    raw_query = raw.query or "",
    headers = raw.headers or {},
    client = raw.client,
    body = raw.body or "",
    verb = raw.method:lower(),
    is_resource = false,
  }
  local after_version
  if parts[1] == "api" and count >= 3 then
    request.group, request.version, after_version = "", parts[2], 3
  elseif parts[1] == "apis" and count >= 4 then
    request.group, request.version, after_version = parts[2], parts[3], 4
  end
  if after_version then
    request.is_resource = true
    read_resource(request, parts, after_version)
    settle_verb(request)
  end
  return request
end


return M
