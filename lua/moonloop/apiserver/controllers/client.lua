--- How controllers read and write: objects as tables of their own, errors raised.
local host = require "moonloop.host"
local label_selector = require "moonloop.apiserver.selector.label_selector"

local M = {}

local MERGE = "application/merge-patch+json"


local function path_of(group, version, plural, namespace, name, subresource)
  local parts = { group == "" and "/api" or "/apis/" .. group, version }
  if namespace and namespace ~= "" then
    parts[#parts + 1] = "namespaces/" .. namespace
  end
  parts[#parts + 1] = plural
  parts[#parts + 1] = name
  parts[#parts + 1] = subresource
  return table.concat(parts, "/")
end


local function owner_reference(owner)
  return {
    apiVersion = owner.apiVersion,
    kind = owner.kind,
    name = owner.metadata.name,
    uid = owner.metadata.uid,
    controller = true,
    blockOwnerDeletion = true,
  }
end


-- The uid of the controller in the object's owner references, or nil.
local function controller_uid(object)
  for _, reference in ipairs(object.metadata.ownerReferences or {}) do
    if reference.controller then
      return reference.uid
    end
  end
end


--- @param controller string its name; in Events, and who it is to the server
function M.new(server, controller)
  local api = {}
  local who = {
    user = {
      name = "system:serviceaccount:kube-system:" .. controller,
      groups = { "system:masters", "system:authenticated" },
    },
    user_agent = "kube-controller-manager",
  }

  local function call(method, path, body, content_type)
    who.content_type = content_type
    local code, answer = server:call(method, path, body, who)
    if code >= 300 then
      error(answer.message or ("%s %s: %d"):format(method, path, code), 0)
    end
    return answer
  end

  local function place(object)
    local group, version = object.apiVersion:match "^(.-)/?([^/]+)$"
    local res = assert(server.registry:by_kind(group, version, object.kind))
    return group, version, res.plural, object.metadata.namespace
  end

  local function path_for(object, subresource)
    local group, version, plural, namespace = place(object)
    return path_of(group, version, plural, namespace, object.metadata.name, subresource)
  end

  --- The objects of a kind, by name, in one namespace or in all.
  function api.list(group, version, plural, namespace)
    local list = call("GET", path_of(group, version, plural, namespace))
    for _, object in ipairs(list.items) do
      object.apiVersion = group == "" and version or group .. "/" .. version
      object.kind = list.kind:gsub("List$", "")
    end
    return list.items
  end

  -- Takes an object nobody controls, when the owner's selector meets its labels. @return table|nil as it is then
  local function adopt(owner, object)
    if owner.metadata.deletionTimestamp or object.metadata.deletionTimestamp
      or not label_selector.match(owner.spec.selector, object.metadata.labels) then
      return nil
    end
    local references = host.json.copy(object.metadata.ownerReferences or host.json.array {})
    references[#references + 1] = owner_reference(owner)
    return api.patch(object, { metadata = { ownerReferences = references } })
  end

  --- Those of them that `owner` controls, and those it adopts.
  function api.owned(owner, group, version, plural)
    local mine = {}
    for _, object in ipairs(api.list(group, version, plural, owner.metadata.namespace)) do
      local uid = controller_uid(object)
      if uid == owner.metadata.uid then
        mine[#mine + 1] = object
      elseif not uid then
        mine[#mine + 1] = adopt(owner, object)
      end
    end
    return mine
  end

  --- The object, or nil.
  function api.get(group, version, plural, namespace, name)
    local code, object = server:call("GET", path_of(group, version, plural, namespace, name), nil, who)
    return code == 200 and object or nil
  end

  --- Creates `object`, controlled by `owner` if one is given.
  function api.create(object, owner)
    if owner then
      object.metadata.ownerReferences = host.json.array { owner_reference(owner) }
      object.metadata.namespace = owner.metadata.namespace
    end
    local group, version, plural, namespace = place(object)
    return call("POST", path_of(group, version, plural, namespace), object)
  end

  --- Changes an object that was read: a merge patch, refused when it is another object by now.
  function api.patch(object, changes)
    changes.metadata = changes.metadata or {}
    changes.metadata.uid = object.metadata.uid
    return call("PATCH", path_for(object), changes, MERGE)
  end

  --- Writes the whole status where it differs from the one that was read.
  function api.write_status(object, status)
    if not host.json.equal(object.status or {}, status) then
      object.status = status
      call("PUT", path_for(object, "status"), object)
    end
  end

  --- Deletes the object that was read, never a later one by its name.
  function api.delete(object)
    if not object.metadata.deletionTimestamp then
      server:call("DELETE", path_for(object), {
        apiVersion = "v1",
        kind = "DeleteOptions",
        propagationPolicy = "Background",
        preconditions = { uid = object.metadata.uid },
      }, who)
    end
  end

  --- An Event on an object.
  function api.event(object, type, reason, message)
    local now, meta = host.timestamp(), object.metadata
    server:call("POST", path_of("", "v1", "events", meta.namespace), {
      apiVersion = "v1",
      kind = "Event",
      metadata = { name = ("%s.%016x"):format(meta.name, host.random(math.maxinteger)), namespace = meta.namespace },
      involvedObject = {
        apiVersion = object.apiVersion, kind = object.kind, name = meta.name, namespace = meta.namespace,
        uid = meta.uid, resourceVersion = meta.resourceVersion,
      },
      type = type,
      reason = reason,
      message = message,
      count = 1,
      firstTimestamp = now,
      lastTimestamp = now,
      source = { component = controller },
      reportingComponent = controller,
      reportingInstance = "",
    }, who)
  end

  return api
end


return M
