-- The ctx of a reconcile in the test world: the functions of docs/scripting.md on tables in
-- memory. Nothing waits, nothing fails by itself.
local objects = require "moonloop.testing.objects"
local pure = require "moonloop.pure"
local result = require "moonloop.result"

local M = {}

local function failure(kind, code, message)
  return setmetatable({ kind = kind, code = code, message = message }, {
    __tostring = function(self)
      return self.kind .. ": " .. self.message
    end,
  })
end


-- The role that a kind has in the declaration, or an error like the host's.
local function role(controller, api_version, kind)
  local function is(declared)
    return declared.apiVersion == api_version and declared.kind == kind
  end
  if is(controller.reconciles) then
    return "reconciles"
  end
  for _, field in ipairs { "owns", "uses" } do
    for _, declared in ipairs(controller[field]) do
      if is(declared) then
        return field
      end
    end
  end
  for _, watch in ipairs(controller.watches) do
    if is(watch.kind) then
      return "watches"
    end
  end
  error(("%s %s is not declared: add it to owns, watches or uses"):format(kind, api_version), 3)
end


local function labels_match(object, labels)
  for key, value in pairs(labels or {}) do
    if (object.metadata.labels or {})[key] ~= value then
      return false
    end
  end
  return true
end


local function owner_reference(object)
  return {
    apiVersion = object.apiVersion,
    kind = object.kind,
    name = object.metadata.name,
    uid = object.metadata.uid,
    controller = true,
    blockOwnerDeletion = true,
  }
end


-- The object as it goes to the server: with a namespace and, when its kind is owned, an owner.
local function complete(world, subject, object)
  local sent = objects.copy(object)
  local owned = role(world.controller, sent.apiVersion, sent.kind) == "owns"
  sent.metadata.namespace = sent.metadata.namespace or subject.metadata.namespace
  if owned and not objects.controller_of(sent) then
    sent.metadata.ownerReferences = sent.metadata.ownerReferences or pure.array {}
    table.insert(sent.metadata.ownerReferences, owner_reference(subject))
  end
  return sent, owned
end


local function add_reads(ctx, world, subject)
  function ctx.get(kind, name, namespace)
    role(world.controller, kind.apiVersion, kind.kind)
    local object = world.stored(kind, name, namespace or subject.metadata.namespace)
    if not object then
      return nil, failure("NotFound", 404, ("%s %s not found"):format(kind.kind, name))
    end
    return objects.view(object)
  end

  function ctx.list(kind, options)
    role(world.controller, kind.apiVersion, kind.kind)
    options = options or {}
    local namespace = options.namespace or subject.metadata.namespace
    local list = pure.array {}
    for _, object in ipairs(world.list(kind)) do
      local owner = objects.controller_of(object)
      local here = namespace == "*" or not namespace or object.metadata.namespace == namespace
      local ours = not options.owned or (owner and owner.uid == subject.metadata.uid)
      if here and ours and labels_match(object, options.labels) then
        list[#list + 1] = objects.view(object)
      end
    end
    return list
  end
end


local function add_creates(ctx, world, subject)
  function ctx.create(object)
    local sent = complete(world, subject, object)
    if world.find(sent) then
      return nil, failure("AlreadyExists", 409, ("%s %s already exists"):format(sent.kind, sent.metadata.name))
    end
    return objects.view(world.put(sent))
  end

  function ctx.ensure(object)
    local sent, owned = complete(world, subject, object)
    local there = world.find(sent)
    if not there then
      return objects.view(world.put(sent))
    end
    local owner = objects.controller_of(there)
    if owned and (not owner or owner.uid ~= subject.metadata.uid) then
      return nil, failure("AlreadyExists", 409, ("%s %s exists and is controlled by %s"):format(
        sent.kind, sent.metadata.name, owner and owner.kind .. " " .. owner.name or "nothing"))
    end
    return objects.view(there)
  end
end


local function add_changes(ctx, world, subject)
  function ctx.apply(object)
    local sent = complete(world, subject, object)
    return objects.view(world.put(objects.merge(world.find(sent), sent)))
  end

  function ctx.patch(object, changes)
    local there = world.find(object)
    if not there or there.metadata.uid ~= object.metadata.uid then
      return nil, failure("NotFound", 404, ("%s %s not found"):format(object.kind, object.metadata.name))
    end
    return objects.view(world.put(objects.merge(there, changes)))
  end

  function ctx.delete(object)
    local there = world.find(object)
    if there and there.metadata.uid == object.metadata.uid then
      world.remove(there)
    end
    return true
  end
end


--- The ctx for one reconcile of `subject`.
function M.new(world, subject)
  local ctx = { invalid = result.invalid, terminal = result.terminal }
  add_reads(ctx, world, subject)
  add_creates(ctx, world, subject)
  add_changes(ctx, world, subject)

  function ctx.event(reason, note, type)
    world.record(subject, type or "Normal", reason, note)
  end

  function ctx.log(message, fields)
    world.logs[#world.logs + 1] = { message = message, fields = fields }
  end

  function ctx.now()
    return world.now()
  end

  return ctx
end


return M
