--- Which manager owns which fields of an object: metadata.managedFields, read and written.
---
--- The key of an owner is what upstream calls a manager's identifier. A manager that updates is a different owner
--- for each version that it writes; a manager that applies is one owner. An owner:
---   { manager =, operation = "Apply"|"Update", version = "apps/v1", subresource = string|nil, time = string|nil,
---     set = the paths, see set.lua }
--- Rules: apimachinery/pkg/util/managedfields/internal/managedfields.go and fieldmanager.go.
local host = require "cluster.host"
local set = require "cluster.apiserver.apply.set"

local json = host.json
local encode = json.encode

local M = {}


--- The identifier of an owner: JSON as upstream writes it, because that is the order in which owners are told.
function M.identifier(manager, operation, version, subresource)
  local text = manager ~= "" and '{"manager":' .. encode(manager) .. "," or "{"
  text = text .. '"operation":"' .. operation .. '"'
  if operation == "Update" then
    text = text .. ',"apiVersion":' .. encode(version)
  end
  if subresource and subresource ~= "" then
    text = text .. ',"subresource":' .. encode(subresource)
  end
  return text .. "}"
end


-- One entry as an owner; nil when it is not valid. `trusted`: its set was written by this module.
local function read_entry(entry, trusted)
  local operation, version = entry.operation, entry.apiVersion
  local usable = (operation == "Apply" or operation == "Update") and type(version) == "string" and version ~= ""
    and entry.fieldsType == "FieldsV1"
  if not usable then
    return nil
  end
  local fields = entry.fieldsV1
  if fields == nil or fields == json.null then
    fields = {}
  elseif not trusted then
    local ok, read = pcall(set.read, fields)
    if not ok then
      return nil
    end
    fields = read
  end
  return {
    manager = entry.manager or "",
    operation = operation,
    version = version,
    subresource = entry.subresource,
    time = entry.time,
    set = fields,
  }
end


--- The owners that the list `entries` names; nil when one of them is not valid.
function M.read(entries, trusted)
  local owners = {}
  for _, entry in ipairs(entries or {}) do
    local owner = type(entry) == "table" and read_entry(entry, trusted)
    if not owner then
      return nil
    end
    owners[M.identifier(owner.manager, owner.operation, owner.version, owner.subresource)] = owner
  end
  return owners
end


--- Returns true if a client asks, with this list, to forget all owners.
function M.is_reset(entries)
  if type(entries) ~= "table" then
    return false
  end
  return #entries == 0 or (#entries == 1 and type(entries[1]) == "table" and next(entries[1]) == nil)
end


--- Returns true if a write leaves the list of owners to the server: it brings no list, or the one that it has read.
function M.are_kept(old, new, subresource)
  local managed_fields = new.metadata.managedFields
  return subresource ~= nil or managed_fields == nil or managed_fields == json.null
    or (old ~= nil and json.equal(managed_fields, old.metadata.managedFields or json.null))
end


--- The owners to go on from after `old` (nil: nothing was there), when a write brings the list `managed_fields`. It
--- counts unless those of `old` are kept; see are_kept.
function M.of_write(old, managed_fields, are_kept)
  if not are_kept then
    if M.is_reset(managed_fields) then
      return {}
    end
    local owners = M.read(managed_fields, false)
    if owners and next(owners) ~= nil then
      return owners
    end
  end
  return M.read(old and old.metadata.managedFields, true) or {}
end


local function before(a, b)
  if a.operation ~= b.operation then
    return a.operation < b.operation
  elseif a.time ~= b.time then
    return (a.time or "") < (b.time or "")
  elseif a.manager ~= b.manager then
    return (a.manager or "") < (b.manager or "")
  elseif a.apiVersion ~= b.apiVersion then
    return a.apiVersion < b.apiVersion
  end
  return (a.subresource or "") < (b.subresource or "")
end


--- The list for metadata.managedFields; nil when nobody owns anything.
function M.write(owners)
  if next(owners) == nil then
    return nil
  end
  local entries = json.array {}
  for _, owner in pairs(owners) do
    entries[#entries + 1] = {
      manager = owner.manager ~= "" and owner.manager or nil,
      operation = owner.operation,
      apiVersion = owner.version,
      time = owner.time,
      fieldsType = "FieldsV1",
      fieldsV1 = owner.set,
      subresource = owner.subresource,
    }
  end
  if #entries > 1 then
    table.sort(entries, before)
  end
  return entries
end


--- A new owner with the set of another, or with none.
function M.with_set(owner, paths)
  return {
    manager = owner.manager,
    operation = owner.operation,
    version = owner.version,
    subresource = owner.subresource,
    time = owner.time,
    set = paths,
  }
end


return M
