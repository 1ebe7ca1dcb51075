-- Copies, merges and comparisons of objects, for scripts: moonloop.copy, merge and equal. Each table is looked at
-- without metamethods; one that came from the API server is decoded as it is walked.
-- Rules of merge: strategic merge patches (apimachinery/pkg/util/strategicpatch/patch.go), with the keys that
-- Kubernetes' kinds have (patchMergeKey and listMapKey of k8s.io/api). cluster/spec/apiserver/merge_keys_spec.lua
-- compares the two tables below with them. (host/codec/json_apply.c, which is asked about lists of any kind, guesses.)
local _, host = ...
local names = host.require "moonloop.names"

local M = {}

local LEVELS_MAX, VALUES_MAX = 128, 50000

-- The lists whose items are told apart, by the names of their fields, and by which of their own fields. "": the items
-- are texts.
local MERGE_KEYS = {
  addresses = "type",
  allocatedResourcesStatus = "name",
  conditions = "type",
  containers = "name",
  drivers = "name",
  env = "name",
  ephemeralContainers = "name",
  finalizers = "",
  hostAliases = "ip",
  hostIPs = "ip",
  imagePullSecrets = "name",
  initContainers = "name",
  matchConditions = "name",
  ownerReferences = "uid",
  podCIDRs = "",
  podIPs = "ip",
  ports = "containerPort protocol",
  reservedFor = "uid",
  resourceClaimStatuses = "name",
  resourceClaims = "name",
  schedulingGates = "name",
  secrets = "name",
  topologySpreadConstraints = "topologyKey whenUnsatisfiable",
  variables = "name",
  volumeDevices = "devicePath",
  volumeMounts = "mountPath",
  volumes = "name",
  webhooks = "name",
  ["x-kubernetes-validations"] = "rule",
}
-- The same for one field below another: `ports` of a NetworkPolicy or an EndpointSlice are not told apart.
local MERGE_KEYS_BELOW = { spec = { ports = "port protocol" } }

-- The value of a key in an item that lacks it.
local KEY_DEFAULTS = { protocol = "TCP" }

-- Below these fields stand texts that only look like amounts.
local TEXTS = "annotations binaryData data labels matchLabels metadata nodeSelector selector stringData value"


local function refuse(walk, problem)
  walk.refusal = problem
  error(problem, 0)
end


-- Walks values within the limits. The error of a refusal has the line of the script.
local function run(call, f, ...)
  local walk = { left = VALUES_MAX, level = 0 }
  local ok, result = pcall(f, walk, ...)
  if walk.refusal then
    error(("%s: %s"):format(call, walk.refusal), 3)
  elseif not ok then
    error(result, 0)
  end
  return result
end


-- The entries of a table, in a new one, and whether it is a list. Ends with close.
local function open(walk, value)
  local entries, count = host.contents(value, walk.left)
  if not entries then
    refuse(walk, ("more than %d values"):format(VALUES_MAX))
  elseif walk.level == LEVELS_MAX then
    refuse(walk, ("more than %d levels of tables; is one of them inside itself?"):format(LEVELS_MAX))
  end
  walk.left, walk.level = walk.left - count, walk.level + 1
  return entries, host.is_array(entries) or entries[1] ~= nil, count
end


local function close(walk, ...)
  walk.level = walk.level - 1
  return ...
end


local function copy_value(walk, value)
  if type(value) ~= "table" then
    return value
  end
  local copy = open(walk, value)
  for key, inner in pairs(copy) do
    if type(inner) == "table" then
      copy[key] = copy_value(walk, inner)
    end
  end
  return close(walk, copy)
end


--- A deep copy: plain tables that the script may change, whatever they were. A value that is no table is returned as it
--- is.
---@param value any
---@return any copy
function M.copy(value)
  return run("moonloop.copy(value)", copy_value, value)
end


-- {{{ merge

local merge_value


local function check_directive(walk, directive, expected, hint)
  if directive ~= nil and directive ~= expected then
    refuse(walk, ('"$patch": expected "%s" %s, got %s'):format(expected, hint,
      type(directive) == "string" and ("'%s'"):format(names.text(directive)) or "a " .. type(directive)))
  end
end


-- Merges the entries of two maps that were opened, and returns `old`, which holds them then. `parent`: the field that
-- they are in.
local function merge_map(walk, old, new, parent)
  check_directive(walk, new["$patch"], "replace", "in a map")
  old, new["$patch"] = new["$patch"] and {} or old, nil
  for key, value in pairs(old) do
    if new[key] == nil then
      old[key] = copy_value(walk, value)
    end
  end
  for key, value in pairs(new) do
    old[key] = merge_value(walk, old[key], value, key, parent)
  end
  return old
end


-- A text by which an item of a list is found; nil when it lacks a key.
local function identity_of(item, keys)
  local parts = {}
  for key in keys:gmatch "%S+" do
    local value = item[key]
    if value == nil then
      value = KEY_DEFAULTS[key]
    end
    if value == nil or type(value) == "table" then
      return nil
    end
    parts[#parts + 1] = ("%s %s"):format(type(value), tostring(value))
  end
  return table.concat(parts, "\0")
end


-- { ["$patch"] = "replace" } among the items.
local function is_replacement(walk, entries)
  if entries["$patch"] ~= "replace" then
    return false
  elseif next(entries, "$patch") ~= nil or next(entries) ~= "$patch" then
    refuse(walk, 'an item with ["$patch"] = "replace" replaces the whole list, and has no other field')
  end
  return true
end


-- The items of a list as a list of { identity =, entries = }: the fields of an item, or a text. With `replaces`, they
-- replace the others. Nil when one of them cannot be told apart.
local function open_items(walk, list, keys)
  local items = { replaces = false }
  for _, item in ipairs(list) do
    local is_map = type(item) == "table"
    if is_map == (keys == "") then
      return nil
    end
    local entries = is_map and close(walk, open(walk, item)) or item
    local identity = is_map and identity_of(entries, keys) or not is_map and item or nil
    if is_map and is_replacement(walk, entries) then
      items.replaces = true
    elseif identity ~= nil then
      items[#items + 1] = { identity = identity, entries = entries }
    else
      return nil
    end
  end
  return items
end


-- Merges an item of the new list into the one of its identity: its `value` is the result, false when it goes.
local function merge_item(walk, item, new, name)
  if type(new) ~= "table" then
    item.value = new
    return
  end
  check_directive(walk, new["$patch"], "delete", "in an item of a list")
  if new["$patch"] then
    item.value, item.entries = false, nil
  else
    item.value = merge_map(walk, item.value or item.entries or {}, new, name)
  end
end


-- Merges two lists that were opened, by these keys; nil when their items cannot be told apart.
local function merge_list(walk, old, new, keys, name)
  local old_items, new_items = open_items(walk, old, keys), open_items(walk, new, keys)
  if not old_items or not new_items then
    return nil
  end
  local items, by_identity, result = new_items.replaces and {} or old_items, {}, host.array()
  for _, item in ipairs(items) do
    by_identity[item.identity] = by_identity[item.identity] or item
  end
  for _, new_item in ipairs(new_items) do
    local item = by_identity[new_item.identity]
    if not item then
      item = {}
      items[#items + 1], by_identity[new_item.identity] = item, item
    end
    merge_item(walk, item, new_item.entries, name)
  end
  for _, item in ipairs(items) do
    if item.value == nil then
      item.value = copy_value(walk, item.entries)
    end
    result[#result + 1] = item.value or nil
  end
  return result
end


-- Merges a value over another one, which may be nil. `name`: of the field, `parent`: of the one above.
function merge_value(walk, old, new, name, parent)
  if rawequal(new, host.null) then
    return nil
  elseif type(new) ~= "table" then
    return new
  end
  local entries, is_list = open(walk, new)
  local old_entries, is_old_list = {}, is_list
  if type(old) == "table" then
    old_entries, is_old_list = close(walk, open(walk, old))
  end
  is_list = is_list or is_old_list and next(entries) == nil
  local keys = is_list and is_old_list and ((MERGE_KEYS_BELOW[parent] or {})[name] or MERGE_KEYS[name])
  if not is_list then
    return close(walk, merge_map(walk, is_old_list and {} or old_entries, entries, name))
  end
  local list = keys and merge_list(walk, old_entries, entries, keys, name) or copy_value(walk, new)
  return close(walk, next(list) == nil and host.array(list) or list)
end


local function check_object(value, name)
  if type(value) ~= "table" then
    error(("moonloop.merge(a, b): %s: expected a table, got %s"):format(name,
      host.is_kind(value) and "the kind " .. tostring(value) or value == nil and "nil" or "a " .. type(value)), 3)
  end
end


--- Merges `b` over `a` into a new object; neither is changed.
---@param a table
---@param b table moonloop.null removes a field, { name = "x", ["$patch"] = "delete" } an item of a list with keys
---@return table merged
function M.merge(a, b)
  check_object(a, "a")
  check_object(b, "b")
  return run("moonloop.merge(a, b)", merge_value, a, b)
end


-- }}}
-- {{{ equal

local function has_unit(value)
  return type(value) == "string" and value:find "%a$" ~= nil
end


local function may_be_amount(value)
  return type(value) == "string" or type(value) == "number" and value - value == 0
end


-- The same amount: "1000m" and "1", 80 and "80". Of two texts, one has a unit: "1" and "1.0" are texts.
local function is_same_amount(a, b)
  local is_number = type(a) ~= type(b)
  return may_be_amount(a) and may_be_amount(b) and (is_number or has_unit(a) or has_unit(b))
    and host.require "moonloop.quantity".compare(a, b) == 0
end


-- `is_text`: no amounts are here, nor below; `is_item`: of a list, whose texts are texts.
local function equal_values(walk, a, b, is_text, is_item)
  if type(a) ~= "table" or type(b) ~= "table" then
    return rawequal(a, b) or type(a) ~= "table" and type(b) ~= "table" and a == b
      or not is_text and not is_item and is_same_amount(a, b)
  end
  local left, is_list, count = open(walk, a)
  local right, is_right_list, right_count = close(walk, open(walk, b))
  local is_equal = count == right_count and (count == 0 or is_list == is_right_list)
  for key, value in pairs(is_equal and left or {}) do
    local below = is_text or names.is_known(key, TEXTS)
    if not equal_values(walk, value, right[key], below, is_list) then
      is_equal = false
      break
    end
  end
  return close(walk, is_equal)
end


--- Are two values the same? Tables by their contents, amounts by their value.
---@return boolean
function M.equal(a, b)
  return run("moonloop.equal(a, b)", equal_values, a, b)
end


-- }}}

return M
