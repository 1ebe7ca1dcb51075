--- Lists in a strategic merge patch.
--- Rules: apimachinery/pkg/util/strategicpatch/patch.go mergeSlice and what it calls.
local failure = require "cluster.apiserver.patch.failure"
local gofmt = require "cluster.apiserver.gofmt"
local host = require "cluster.host"
local order = require "cluster.apiserver.patch.order"

local json = host.json

local M = {}

local GO_TYPES = { string = "string", boolean = "bool", integer = "int64", float = "float64" }


--- The type that Go decodes `value` to.
function M.go_type(value)
  if type(value) == "table" then
    return json.is_array(value) and "[]interface {}" or "map[string]interface {}"
  end
  return GO_TYPES[math.type(value) or type(value)] or "<nil>"
end


--- The type that all items of both lists have: "map" or a scalar's. Raises a Status when they differ or are lists.
function M.element_type(left, right)
  local found
  for _, list in ipairs { left, right } do
    for _, item in ipairs(list) do
      local item_type = M.go_type(item)
      if item_type == "[]interface {}" and not found then
        error(failure.status(422, "Invalid", "the server rejected our request due to an error in our request", {}), 0)
      end
      if found and item_type ~= found then
        failure.unexpected(("list element types are not identical: [%s %s]"):format(
          gofmt.plain(left), gofmt.plain(right)))
      end
      found = item_type
    end
  end
  if not found then
    failure.unexpected("no elements in any of the given slices")
  end
  return found == "map[string]interface {}" and "map" or found
end


local function missing_key(item, merge_key)
  failure.unexpected(("map: %s does not contain declared merge key: %s"):format(gofmt.plain(item), merge_key))
end


local function find(list, merge_key, value)
  for i, item in ipairs(list) do
    if type(item) ~= "table" or json.is_array(item) then
      failure.unexpected(("value for key %d is not a map"):format(i - 1))
    end
    if item[merge_key] == value then
      return i
    end
  end
  return nil
end


-- Each value once. The last one moves into the place of a duplicate, as upstream does it.
local function deduplicate(list)
  local last = #list
  local i = 1
  while i < last do
    local j = i + 1
    while j <= last do
      if list[i] == list[j] then
        list[j] = list[last]
        list[last] = nil
        last = last - 1
      else
        j = j + 1
      end
    end
    i = i + 1
  end
  return list
end


-- Does what the items with $patch ask for. Returns the original and the patch to merge.
local function special_items(original, patch, merge_key)
  local plain, replace = json.array {}, false
  for _, item in ipairs(patch) do
    local directive = item["$patch"]
    if directive == nil then
      plain[#plain + 1] = item
    elseif directive == "replace" then
      replace = true
    elseif directive == "merge" then
      failure.unexpected("merging lists cannot yet be specified in the patch")
    elseif directive ~= "delete" then
      failure.unexpected(("unknown patch type: %s in map: %s"):format(gofmt.plain(directive), gofmt.plain(item)))
    elseif item[merge_key] == nil then
      missing_key(item, merge_key)
    else
      local at = find(original, merge_key, item[merge_key])
      while at do
        table.remove(original, at)
        at = find(original, merge_key, item[merge_key])
      end
    end
  end
  if replace then
    return plain, {}
  end
  return original, plain
end


local function merge_maps(original, patch, node, merge_key, merge_map)
  for _, item in ipairs(patch) do
    local value = item[merge_key]
    if value == nil then
      missing_key(item, merge_key)
    end
    local at = find(original, merge_key, value)
    if at then
      original[at] = merge_map(original[at], item, node)
    else
      original[#original + 1] = item
    end
  end
  return original
end


--- Merges the list `patch` into `original`, which is changed. `node` describes the items, `merge_key` is nil for
--- scalars, `merge_map(original, patch, node)` merges two items. Returns the merged list.
function M.merge(original, patch, node, merge_key, merge_map)
  if #original == 0 and #patch == 0 then
    return original
  end
  local server_order = json.array { table.unpack(original) }
  local merged
  if M.element_type(original, patch) ~= "map" then
    merged = json.array { table.unpack(original) }
    table.move(patch, 1, #patch, #merged + 1, merged)
    merged = deduplicate(merged)
  else
    if not merge_key then
      failure.unexpected("cannot merge lists without merge key for struct")
    end
    original, patch = special_items(original, patch, merge_key)
    server_order = json.array { table.unpack(original) }
    merged = merge_maps(original, patch, node, merge_key, merge_map)
  end
  local named, others = order.partition(merged, patch, merge_key)
  return json.array(order.combine(named, others, patch, server_order, merge_key))
end


--- The order that the server's items count as having had when `patch` was merged into `list` and a $setElementOrder is
--- followed: upstream deletes and appends in the very array that it looks up afterwards, so that new items stand in the
--- places of those that went.
function M.order_after(list, patch, merge_key)
  local slots, length, replace = json.array { table.unpack(list) }, #list, false
  for _, item in ipairs(patch) do
    replace = replace or item["$patch"] == "replace"
    local at = item["$patch"] == "delete" and find({ table.unpack(slots, 1, length) }, merge_key, item[merge_key])
    if at then
      table.move(slots, at + 1, length, at)
      length = length - 1
    end
  end
  for _, item in ipairs(replace and {} or patch) do
    local new = item["$patch"] == nil and not find({ table.unpack(slots, 1, length) }, merge_key, item[merge_key])
    if new and length == #list then
      break
    elseif new then
      length = length + 1
      slots[length] = item
    end
  end
  return slots
end


--- `list` without the values that `deleted` has.
function M.without(list, deleted)
  local gone, result = {}, json.array {}
  for _, value in ipairs(deleted) do
    gone[value] = true
  end
  for _, value in ipairs(list) do
    if not gone[value] then
      result[#result + 1] = value
    end
  end
  return result
end


local function key_of(item, merge_key)
  if type(item) ~= "table" then
    failure.unexpected("expected a map[string]interface {}, but received a " .. M.go_type(item))
  elseif item[merge_key] == nil then
    missing_key(item, merge_key)
  end
  return item[merge_key]
end


-- Whether `item` of a patch is what `wanted` of an order list names.
local function names(wanted, item, merge_key)
  if not merge_key then
    return wanted == item
  end
  local key = key_of(item, merge_key)
  return key_of(wanted, merge_key) == key
end


--- Raises a Status unless `wanted`, a $setElementOrder list, has the items of `patch` in the same order.
function M.check_order(patch, wanted, merge_key)
  local at, left = 1, {}
  for _, item in ipairs(patch) do
    if type(item) ~= "table" or item["$patch"] == nil then
      left[#left + 1] = item
    end
  end
  for _, value in ipairs(wanted) do
    if left[at] ~= nil and names(value, left[at], merge_key) then
      at = at + 1
    end
  end
  if #wanted > 0 and left[at] ~= nil then
    failure.unexpected(("The order in patch list:\n%s\n doesn't match $setElementOrder list:\n%s\n"):format(
      gofmt.plain(patch), gofmt.plain(wanted)))
  end
end


--- `merged` in the order that `wanted` asks for; items it does not name keep the order they had in `current`.
function M.ordered(merged, wanted, current, patch, merge_key)
  local named, others = order.partition(merged, wanted, merge_key)
  M.element_type(current, patch)
  return json.array(order.combine(named, others, wanted, current, merge_key))
end


return M
