--- How controllers read and write: each gets its own table of an object, and errors are raised.
local event = require "cluster.event"
local host = require "cluster.host"
local label_selector = require "cluster.apiserver.selector.label_selector"

local M = {}

local MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"


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


-- The uid of the controller among owner references, or nil.
local function controller_uid(references)
  for _, reference in ipairs(references or {}) do
    if reference.controller then
      return reference.uid
    end
  end
end


--- @param controller string its name; in Events, and who it is to the server
function M.new(server, controller)
  local api = { registry = server.registry }
  local who = {
    user = {
      name = "system:serviceaccount:kube-system:" .. controller,
      groups = { "system:masters", "system:authenticated" },
    },
    user_agent = "kube-controller-manager",
  }

  -- Each request may be the end of this controller's turn.
  local function ask(method, path, body, content_type)
    who.content_type = content_type
    local code, answer = server:call(method, path, body, who)
    host.give_way()
    return code, answer
  end

  -- A request that raises an error if it fails.
  local function call(method, path, body, content_type)
    local code, answer = ask(method, path, body, content_type)
    if code >= 300 then
      error(answer.message or ("%s %s: %d"):format(method, path, code), 0)
    end
    return answer
  end

  local registry, store = server.registry, server.store

  -- Of an object, or without a name of its kind in its namespace.
  local function path_for(object, name, subresource)
    local res = assert(registry:of(object.apiVersion, object.kind))
    return registry.path(res, object.metadata.namespace, name, subresource)
  end

  --- The objects of a kind, by name, in one namespace or in all.
  function api.list(group, version, plural, namespace)
    local list = call("GET", registry.path(registry:find(group, version, plural), namespace))
    for _, object in ipairs(list.items) do
      object.apiVersion = group == "" and version or group .. "/" .. version
      object.kind = list.kind:gsub("List$", "")
    end
    return list.items
  end

  -- Makes a list of entries one of their objects. Reading thousands takes turns.
  local function read_all(res, list)
    for i, entry in ipairs(list) do
      list[i] = store.object(res, entry)
      host.give_way()
    end
    return list
  end

  --- The objects of a kind in a namespace that have all these labels, by name.
  function api.labelled(labels, group, version, plural, namespace)
    local res, list = registry:find(group, version, plural), {}
    store:collection(res.id):each(namespace, nil, function(entry)
      if label_selector.match({ matchLabels = labels }, entry.labels) then
        list[#list + 1] = entry
      end
    end)
    return read_all(res, list)
  end

  local peeked = setmetatable({}, { __mode = "k" }) -- entry, which never changes → its object

  --- The objects of a kind, in all namespaces, not to be changed: each is decoded once while it stays as it is.
  function api.peek(group, version, plural)
    local res, list = registry:find(group, version, plural), {}
    store:collection(res.id):each(nil, nil, function(entry)
      list[#list + 1] = entry
    end)
    for i, entry in ipairs(list) do
      peeked[entry] = peeked[entry] or store.object(res, entry)
      list[i] = peeked[entry]
      host.give_way()
    end
    return list
  end

  -- Takes an object that nobody controls. @return table as it is then
  local function adopt(owner, object)
    local references = object.metadata.ownerReferences or host.json.array {}
    references[#references + 1] = owner_reference(owner)
    return api.patch(object, { metadata = { ownerReferences = references } })
  end

  -- Lets go of an object that the owner's selector does not meet any more.
  local function release(owner, object)
    local other_owners = host.json.array {}
    for _, reference in ipairs(object.metadata.ownerReferences) do
      if reference.uid ~= owner.metadata.uid then
        other_owners[#other_owners + 1] = reference
      end
    end
    api.patch(object, { metadata = { ownerReferences = #other_owners > 0 and other_owners or host.json.null } })
  end

  --- The objects of a kind that `owner` controls, by name. Its selector decides: an orphan that it meets is adopted,
  --- and what it does not meet any more is let go.
  --- @param is_member fun(name: string): boolean|nil  what else an object has to be like; nil: labels are enough
  function api.owned(owner, group, version, plural, is_member)
    local res, mine, orphans, strangers = registry:find(group, version, plural), {}, {}, {}
    local is_staying = not owner.metadata.deletionTimestamp
    local function fits(entry)
      return label_selector.match(owner.spec.selector, entry.labels) and (not is_member or is_member(entry.name))
    end
    store:collection(res.id):each(owner.metadata.namespace, nil, function(entry)
      local uid = controller_uid(entry.owners)
      if uid == owner.metadata.uid then
        local list = (not is_staying or fits(entry)) and mine or strangers
        list[#list + 1] = entry
      elseif not uid and is_staying and not entry.deleting and fits(entry) then
        orphans[#orphans + 1] = entry
      end
    end)
    for _, object in ipairs(read_all(res, strangers)) do
      release(owner, object)
    end
    read_all(res, mine)
    for _, entry in ipairs(orphans) do
      mine[#mine + 1] = adopt(owner, store.object(res, entry))
    end
    return mine
  end

  --- The objects of a kind that `owner` controls by their owner references, whatever its selector is about.
  function api.controlled(owner, group, version, plural)
    local res, mine = registry:find(group, version, plural), {}
    store:collection(res.id):each(owner.metadata.namespace, nil, function(entry)
      if controller_uid(entry.owners) == owner.metadata.uid then
        mine[#mine + 1] = entry
      end
    end)
    return read_all(res, mine)
  end

  --- The object, or nil.
  function api.get(group, version, plural, namespace, name)
    local path = registry.path(registry:find(group, version, plural), namespace, name)
    local code, object = ask("GET", path)
    return code == 200 and object or nil
  end

  --- Makes `owner` the one owner of an object that is about to be written, and its controller.
  function api.own(object, owner)
    object.metadata.ownerReferences = host.json.array { owner_reference(owner) }
    object.metadata.namespace = owner.metadata.namespace
  end

  --- Creates `object`, controlled by `owner` if one is given.
  function api.create(object, owner)
    if owner then
      api.own(object, owner)
    end
    return call("POST", path_for(object), object)
  end

  --- Writes the whole of an object. One that was read is refused when it has changed since.
  function api.replace(object)
    call("PUT", path_for(object, object.metadata.name), object)
  end

  --- Changes an object that was read: a merge patch, refused when it is another object by now.
  function api.patch(object, changes)
    changes.metadata = changes.metadata or {}
    changes.metadata.uid = object.metadata.uid
    return call("PATCH", path_for(object, object.metadata.name), changes, MERGE)
  end

  --- Writes an object that was read through one of its subresources; refused when it has changed since.
  function api.write_part(object, subresource)
    call("PUT", path_for(object, object.metadata.name, subresource), object)
  end

  --- Writes the whole status where it differs from the one that was read.
  function api.write_status(object, status)
    if not host.json.equal(object.status or {}, status) then
      object.status = status
      api.write_part(object, "status")
    end
  end

  --- Applies a status under the controller's name; what it applied before and does not any more is taken away.
  function api.apply_status(object, status)
    local path = ("%s?fieldManager=%s&force=true"):format(path_for(object, object.metadata.name, "status"), controller)
    call("PATCH", path, {
      apiVersion = object.apiVersion, kind = object.kind, metadata = { name = object.metadata.name }, status = status,
    }, APPLY)
  end

  --- Deletes the object that was read, never a later one by its name.
  --- @param propagation string|nil what becomes of what it owns; "Background" when not given
  function api.delete(object, propagation)
    if not object.metadata.deletionTimestamp then
      ask("DELETE", path_for(object, object.metadata.name), {
        apiVersion = "v1",
        kind = "DeleteOptions",
        propagationPolicy = propagation or "Background",
        preconditions = { uid = object.metadata.uid },
      })
    end
  end

  --- An Event on an object; one of no namespace has it in "default".
  function api.event(object, type, reason, message)
    local body = event.new(object, type, reason, message, controller)
    ask("POST", registry.path(registry:find("", "v1", "events"), body.metadata.namespace), body)
  end

  return api
end


return M
