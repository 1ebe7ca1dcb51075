--- Strategic merge patch: a merge patch that merges lists by key, where the schema says so, and has
--- directives ($patch, $deleteFromPrimitiveList, $setElementOrder, $retainKeys).
--- Rules: apimachinery/pkg/util/strategicpatch/patch.go, apiserver/pkg/endpoints/handlers/patch.go.
local failure = require "cluster.apiserver.patch.failure"
local gofmt = require "cluster.apiserver.gofmt"
local host = require "cluster.host"
local lists = require "cluster.apiserver.patch.strategic_list"
local lookup = require "cluster.apiserver.patch.lookup"

local json = host.json
local is_array = json.is_array

local DIRECTIVE = "$patch"
local RETAIN_KEYS = "$retainKeys"
local DELETE_FROM_LIST = "$deleteFromPrimitiveList"
local SET_ORDER = "$setElementOrder"

local merge_map


local function starts_with(text, prefix)
  return text:sub(1, #prefix) == prefix
end


-- "map", "list" or "scalar".
local function shape(value)
  if type(value) ~= "table" then
    return "scalar"
  end
  return is_array(value) and "list" or "map"
end


-- The name of the field that a directive such as "$setElementOrder/finalizers" is about.
local function target_of(key, prefix, what)
  local name = key:match("^%" .. prefix .. "/(.*)$")
  if not name then
    failure.bad_request("invalid patch format of " .. what)
  end
  return name
end


-- `value` as it is stored when nothing was there to merge with: without null members and without parts that
-- are directives, which go from `value` as well. nil when nothing is left to store.
local function stored(value)
  if type(value) ~= "table" then
    return value
  end
  if is_array(value) then
    local result = json.array {}
    for _, item in ipairs(value) do
      result[#result + 1] = stored(item)
    end
    return result
  end
  if value[DIRECTIVE] ~= nil then
    return nil
  end
  for key, item in pairs(value) do
    if item == json.null then
      value[key] = nil
    else
      value[key] = stored(item)
    end
  end
  return value
end


local function whole_map(directive, patch)
  if directive == "replace" then
    patch[DIRECTIVE] = nil
    return patch
  elseif directive == "delete" then
    return {}
  end
  failure.unexpected(("unknown patch type: %s in map: %s"):format(gofmt.plain(directive), gofmt.plain(patch)))
end


-- Takes from `original` all that $retainKeys does not name.
local function retain_keys(original, patch)
  local keep = patch[RETAIN_KEYS]
  if keep == nil then
    return
  end
  patch[RETAIN_KEYS] = nil
  if shape(keep) ~= "list" then
    failure.bad_request("invalid patch format of retainKeys")
  end
  local retained = {}
  for _, key in ipairs(keep) do
    retained[key] = true
  end
  for key, value in pairs(patch) do
    local directive = starts_with(key, DELETE_FROM_LIST) or starts_with(key, SET_ORDER)
    if value ~= json.null and not directive and not retained[key] then
      failure.bad_request("invalid patch format of retainKeys")
    end
  end
  for key in pairs(original) do
    if not retained[key] then
      original[key] = nil
    end
  end
end


local function list_or_fail(value)
  if value ~= nil and shape(value) ~= "list" then
    failure.unexpected("expected a []interface {}, but received a " .. lists.go_type(value))
  end
  return value
end


-- One $setElementOrder: merges the list it is about, and brings it into the order.
local function set_order(original, patch, key, node)
  local order = list_or_fail(patch[key])
  patch[key] = nil
  local name = target_of(key, SET_ORDER, "setElementOrder list")
  local current, change = list_or_fail(original[name]), list_or_fail(patch[name])
  local items, meta = lookup.list(node, name)
  lists.check_order(change or {}, order, meta.merge_key)
  if not current and not change then
    return
  end
  local merged, server_order = current or stored(change), current or {}
  if current and change then
    merged = change
    if meta.strategy == "merge" then
      merged = lists.merge(json.array(json.copy(current)), change, items, meta.merge_key, merge_map)
      server_order = meta.merge_key and lists.order_after(current, change, meta.merge_key) or current
    end
  end
  original[name] = lists.ordered(merged, order, server_order, change or {}, meta.merge_key)
  patch[name] = nil
end


local function merge_list(original, change, name, node, deleting)
  local items, meta = lookup.list(node, name)
  if deleting and (#original > 0 or #change > 0) and lists.element_type(original, change) ~= "map" then
    return lists.without(original, change)
  elseif deleting or meta.strategy == "merge" then
    return lists.merge(original, change, items, meta.merge_key, merge_map)
  end
  return change
end


-- Merges the member `key` of a patch.
local function merge_member(original, key, value, node)
  local name, deleting = key, false
  if starts_with(key, DELETE_FROM_LIST) then
    name, deleting = target_of(key, DELETE_FROM_LIST, "primitive list"), true
  end
  local current = original[name]
  if value == json.null then
    original[name] = nil
  elseif current == nil or shape(current) ~= shape(value) then
    if not deleting then
      original[name] = stored(value)
    end
  elseif shape(value) == "map" then
    local field, meta = lookup.field(node, name)
    original[name] = meta.strategy == "replace" and value or merge_map(current, value, field)
  elseif shape(value) == "list" then
    original[name] = merge_list(current, value, name, node, deleting)
  else
    original[name] = value
  end
end


-- Merges `patch` into `original`; both are changed. Returns the merged map.
function merge_map(original, patch, node)
  if patch[DIRECTIVE] ~= nil then
    return whole_map(patch[DIRECTIVE], patch)
  end
  retain_keys(original, patch)
  local keys = gofmt.sorted_keys(patch)
  for _, key in ipairs(keys) do
    if starts_with(key, SET_ORDER) then
      set_order(original, patch, key, node)
    end
  end
  for _, key in ipairs(keys) do
    if patch[key] ~= nil then
      merge_member(original, key, patch[key], node)
    end
  end
  return original
end


local function apply(object, patch, schema)
  if patch == json.null then
    return json.copy(object)
  elseif shape(patch) ~= "map" then
    failure.bad_request(("json: cannot unmarshal %s into Go value of type map[string]interface {}"):format(
      gofmt.json_type(patch)))
  end
  return json.copy(merge_map(json.copy(object), patch, lookup.root(schema, object.kind)))
end


--- Merges `patch` into `object`, an object of `schema`. Returns the new object, or nil and a Status: 400 for a
--- malformed patch, 500 (as upstream) for one that does not fit the object. The object is not changed; of the patch the
--- directives that were followed are gone afterwards, as messages about the outcome show it.
return function(object, patch, schema)
  return failure.try(apply, object, patch, schema)
end
