--- Reading and writing the objects of a world.
local controllers = require "cluster.controllers"
local coverage = require "cluster.testing.coverage"
local host = require "cluster.host"

local M = {}

local APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
local TESTER = { name = "tester", groups = { "system:masters", "system:authenticated" } }


local function resource(server, kind)
  return server.registry:of(kind.apiVersion, kind.kind)
    or error(("no kind %s in %s; are its CustomResourceDefinitions among the world's crds?"):format(kind.kind,
      kind.apiVersion), 0)
end


local function path_of(server, kind, name, namespace, rest)
  local res = resource(server, kind)
  return server.registry.path(res, res.namespaced and (namespace or "default"), name) .. (rest or "")
end


-- JSON null and the marks of arrays mean nothing to a test: what is null is not there.
local function plain(value)
  if type(value) ~= "table" then
    return value
  end
  local copy = {}
  for key, field in pairs(value) do
    if field ~= host.json.null then
      copy[key] = plain(field)
    end
  end
  return copy
end


local function requester(server)
  return function(method, path, body, content_type)
    local code, answer = server:call(method, path, body, {
      user = TESTER, user_agent = "moonloop-test", content_type = content_type,
    })
    if code >= 300 then
      error(answer.message and host.escape(answer.message) or ("%s %s: %d"):format(method, path, code), 0)
    end
    return answer
  end
end


local function add_reads(world, server, request, guard)
  --- The object, or nil. The namespace is "default" when left out.
  function world.get(kind, name, namespace)
    guard()
    local code, object = server:call("GET", path_of(server, kind, name, namespace), nil, { user = TESTER })
    if code ~= 200 and code ~= 404 then
      error(host.escape(object.message), 0)
    end
    return code == 200 and plain(object) or nil
  end

  --- The objects of a kind in all namespaces, by namespace and name; `selector` is one of labels.
  function world.list(kind, selector)
    guard()
    local query = selector and "?labelSelector=" .. selector:gsub("[^%w_.-]", function(char)
      return ("%%%02X"):format(char:byte())
    end)
    return plain(request("GET", path_of(server, kind, nil, "", query)).items)
  end

  --- The Events about objects, of one kind and name and from one reporter if given, oldest first: { type =, reason =,
  --- note =, kind =, name =, namespace =, related =, by = }.
  function world.events(kind, name, by)
    local list = {}
    for _, event in ipairs(world.list { apiVersion = "events.k8s.io/v1", kind = "Event" }) do
      local about = event.regarding or {}
      local is_from = not by or event.reportingController == by
      if is_from and (not kind or about.kind == kind.kind) and (not name or about.name == name) then
        list[#list + 1] = {
          type = event.type, reason = event.reason, note = event.note, kind = about.kind, name = about.name,
          namespace = event.metadata.namespace, related = event.related,
          by = event.reportingController,
          order = math.tointeger(event.metadata.resourceVersion),
        }
      end
    end
    table.sort(list, function(a, b) return a.order < b.order end)
    return list
  end
end


-- The objects that world.apply was given, as a list.
local function objects_of(what)
  local list, why = what, nil
  if type(what) == "string" then
    list, why = host.yaml.decode(what)
  elseif what.kind then
    list = { what }
  end
  for _, object in ipairs(list or {}) do
    if type(object) ~= "table" or type(object.metadata) ~= "table" then
      why = "a manifest must be a mapping with apiVersion, kind and metadata"
    end
  end
  return not why and list or error(host.escape(why), 0)
end


local function add_writes(world, server, request, guard, settle)
  --- Applies an object, or each of a list, or the documents of a YAML text.
  function world.apply(what)
    guard()
    for _, object in ipairs(objects_of(what)) do
      local meta = object.metadata
      coverage.note_object(object.kind, object)
      request("PATCH", path_of(server, object, meta.name, meta.namespace, "?fieldManager=test&force=true"), object,
        APPLY)
    end
    settle()
  end

  --- Merges changes into an object; with `subresource` into its "status".
  function world.patch(kind, name, changes, subresource, namespace)
    guard()
    coverage.note_object(kind.kind, changes)
    local rest = subresource and "/" .. subresource or ""
    request("PATCH", path_of(server, kind, name, namespace, rest), changes, MERGE)
    settle()
  end

  --- Deletes an object; what it owns goes with it.
  function world.delete(kind, name, namespace)
    guard()
    request("DELETE", path_of(server, kind, name, namespace))
    settle()
  end
end


--- Notes what the operator asks for: { verb =, path =, code = }, in order.
local function add_requests(world, server)
  local list = {}
  server:audit(function(record)
    if (record.user_agent or ""):find("moonloop/", 1, true) == 1 then
      list[#list + 1] = { verb = record.verb, path = record.path, code = record.code }
    end
  end)

  --- The operator's requests so far; `verb` ("create") and `path` (a part of it) choose among them.
  function world.requests(verb, path)
    local found = {}
    for _, entry in ipairs(list) do
      if (not verb or entry.verb == verb) and (not path or entry.path:find(path, 1, true)) then
        found[#found + 1] = entry
      end
    end
    return found
  end
end


function M.add(world, server, guard, settle)
  local request = requester(server)
  add_reads(world, server, request, guard)
  add_writes(world, server, request, guard, settle)
  add_requests(world, server)
  controllers.start(server)

  --- Seconds since 1970.
  function world.now()
    return host.now()
  end
end


return M
