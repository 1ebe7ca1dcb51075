-- ctx.once: values that are made once and kept in a Secret. host/script/once.c binds it to ctx, and passes the
-- functions by which it reads and writes; each runs in the coroutine of the reconcile.
--
-- A key never gets a second value: a Secret is only ever created, never replaced. If somebody else was faster, the
-- values on the server count. A key is added by a patch with uid and resourceVersion, so it fails if the Secret is
-- not the one that was read; the reconcile then runs again. So a cache that is behind costs a request, never a value.
local _, host = ...
local names = host.require "moonloop.names"

local M = {}

local CALL = "ctx.once(name, { key = function() … end } [, namespace]): "
local KEYS_MAX = 100
local NAME_MAX = 253
local VALUE_MAX = 64 * 1024 -- bytes
local ALL_MAX = 1024 * 1024 -- of all values of a Secret: the API server's limit

local Secret = host.kind("v1", "Secret", nil, nil, false)

--- The label of each Secret of ctx.once, so that pruning the objects of an owner leaves it alone.
M.LABEL = "moonloop.dev/once"


local function is_secret_name(name)
  return type(name) == "string" and #name <= NAME_MAX and name:find "^[a-z0-9][a-z0-9.-]*$" and not name:find "[.-]$"
end


-- As Kubernetes has it (IsConfigMapKey).
local function is_key(key)
  return type(key) == "string" and #key <= NAME_MAX and key:find "^[%w._-]+$" and key ~= "." and key:sub(1, 2) ~= ".."
end


-- The keys in order, and a copy of the functions; or nil and the problem.
local function check_functions(declared_functions)
  if type(declared_functions) ~= "table" then
    return nil, "expected a table of functions, got a " .. type(declared_functions)
  end
  local functions, keys = host.copy(declared_functions), {}
  for key, make in pairs(functions) do
    if not is_key(key) then
      return nil, ("'%s' is no key of a Secret: letters, digits, '-', '_' and '.', at most %d"):format(
        names.text(key), NAME_MAX)
    elseif type(make) ~= "function" then
      return nil, ("key '%s': expected the function that makes the value, got a %s"):format(key, type(make))
    end
    keys[#keys + 1] = key
  end
  if #keys == 0 or #keys > KEYS_MAX then
    return nil, ("%d keys; expected 1 to %d"):format(#keys, KEYS_MAX)
  end
  table.sort(keys)
  return keys, functions
end


-- The namespace of the Secret, or nil and the problem.
local function check_namespace(wanted, owner)
  if wanted ~= nil and type(wanted) ~= "string" then
    return nil, "namespace: expected a string, got a " .. type(wanted)
  end
  local namespace = wanted and wanted ~= "" and wanted or owner.namespace
  if namespace == "" then
    return nil, ("say which namespace; a %s has none"):format(owner.kind)
  elseif owner.namespace ~= "" and namespace ~= owner.namespace then
    return nil, ("a %s in namespace '%s' cannot own a Secret in namespace '%s'"):format(owner.kind, owner.namespace,
      names.text(namespace))
  elseif not is_secret_name(namespace) then
    return nil, ("'%s' is no name of a namespace"):format(names.text(namespace))
  end
  return namespace
end


-- How the script declares Secrets; or nil and the problem.
local function check_declared(declared)
  if not declared then
    return nil, 'Secret is not declared: add moonloop.kind("v1", "Secret") to owns, or to uses'
  elseif declared.labels then
    return nil, ("this script watches the Secrets with the labels '%s' only, and would never see this one: declare "
      .. "Secret without labels, or in uses"):format(declared.labels)
  end
  return declared
end


-- Returns the value of one key, from the script's function; or nil and the problem, which does not show the value.
local function make_value(key, make)
  local ok, value = pcall(make)
  if not ok then
    return nil, ("key '%s': its function failed: %s"):format(key, tostring(value))
  elseif type(value) ~= "string" then
    return nil, ("key '%s': its function returned %s; expected a string"):format(key,
      value == nil and "nothing" or "a " .. type(value))
  elseif #value > VALUE_MAX then
    return nil, ("key '%s': its function returned %d bytes; at most %d"):format(key, #value, VALUE_MAX)
  end
  return value
end


-- Returns the changes that give `data`, the fields of a Secret, exactly `keys`: new values for those that are missing,
-- and null for those that are too many; or nil and the problem.
local function find_changes(ctx, data, keys, functions)
  local changes, listed, size = {}, {}, 0
  for _, key in ipairs(keys) do
    listed[key] = true
    local value = ctx.decode(data[key])
    if not value then
      local problem
      value, problem = make_value(key, functions[key])
      if not value then
        return nil, problem
      end
      changes[key] = ctx.encode(value)
    end
    size = size + #value
  end
  for key in pairs(data) do
    if not listed[key] then
      changes[key] = host.null
    end
  end
  if size > ALL_MAX then
    return nil, ("the values have %d bytes together; a Secret holds %d"):format(size, ALL_MAX)
  end
  return changes
end


local function manifest(name, namespace, owner, data)
  return {
    apiVersion = "v1", kind = "Secret", type = "Opaque", data = data,
    metadata = {
      name = name, namespace = namespace, labels = { [M.LABEL] = "true" },
      ownerReferences = host.array {
        {
          apiVersion = owner.apiVersion, kind = owner.kind, name = owner.name, uid = owner.uid, controller = true,
          blockOwnerDeletion = true,
        },
      },
    },
  }
end


-- Returns nil if the owner controls the Secret, else the name of its controller, or "nothing".
local function other_controller(secret, owner)
  for _, reference in ipairs(secret.metadata.ownerReferences or {}) do
    if reference.controller == true and reference.uid == owner.uid then
      return nil
    elseif reference.controller == true then
      local earlier = reference.kind == owner.kind and reference.name == owner.name
      return ("%s%s %s"):format(earlier and "an earlier " or "", tostring(reference.kind), tostring(reference.name))
    end
  end
  return "nothing"
end


local function data_of(secret)
  return type(secret.data) == "table" and secret.data or {}
end


-- The Secret as it has to be, read or written; or nil and an err; or nil, nil and a problem to raise.
local function settle(ctx, wanted, keys, functions)
  local read = wanted.declared.metadata_only and ctx.live or ctx.get
  local secret, err = read(Secret, wanted.name, wanted.namespace)
  if not secret and err.kind == "NotFound" then
    local made, problem = find_changes(ctx, {}, keys, functions)
    if not made then
      return nil, nil, problem
    end
    secret, err = ctx.ensure(manifest(wanted.name, wanted.namespace, wanted.owner, made))
  end
  if not secret then
    return nil, err
  end
  local other = other_controller(secret, wanted.owner)
  if other == "nothing" then
    secret, err = ctx.adopt(secret)
    if not secret then
      return nil, err
    end
  elseif other then
    return ctx.refuse("AlreadyExists", wanted.name, wanted.namespace, "exists and is controlled by " .. other)
  end
  local changes, problem = find_changes(ctx, data_of(secret), keys, functions)
  if not changes then
    return nil, nil, problem
  end
  local is_marked = secret.metadata.labels[M.LABEL] == "true"
  if next(changes) == nil and is_marked then
    return secret
  elseif next(changes) ~= nil and secret.immutable == true then
    return ctx.refuse("Invalid", wanted.name, wanted.namespace, ("is immutable, and key '%s' has to be %s: delete the "
      .. "Secret, or name another"):format(next(changes), changes[next(changes)] == host.null and "removed" or "made"))
  end
  return ctx.patch(secret, { data = changes, metadata = { labels = { [M.LABEL] = "true" } } })
end


local function values_of(ctx, secret, keys)
  local values, data = {}, data_of(secret)
  for _, key in ipairs(keys) do
    values[key] = ctx.decode(data[key])
    if not values[key] then
      return nil, key
    end
  end
  return values
end


--- The function ctx.once.
---@param ctx table of once.c: get, live, ensure, patch, adopt, and owner, declared, encode, decode, refuse
function M.bind(ctx)
  return function(name, given, namespace)
    local owner = ctx.owner()
    if not owner then
      error(CALL .. "only while reconciling", 2)
    elseif not is_secret_name(name) then
      error(CALL .. "expected the name of a Secret: lower case letters, digits, '-' and '.'", 2)
    end
    local keys, functions = check_functions(given)
    local where, problem = check_namespace(namespace, owner)
    local declared, undeclared = check_declared(ctx.declared())
    if not keys or not where or not declared then
      error(CALL .. (not keys and functions or problem or undeclared), 2)
    end
    local wanted = { name = name, namespace = where, owner = owner, declared = declared }
    local secret, err, wrong = settle(ctx, wanted, keys, functions)
    if wrong then
      error(CALL .. wrong, 2)
    elseif not secret then
      return nil, err
    end
    local values, missing = values_of(ctx, secret, keys)
    if not values then
      return ctx.refuse("Invalid", name, where, ("lacks key '%s' after it was written: what admits it on the server "
        .. "has taken it out"):format(missing))
    end
    return values
  end
end


return M
