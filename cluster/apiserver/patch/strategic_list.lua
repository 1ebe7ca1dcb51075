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


local function copy_of(list)
  return table.move(list, 1, #list, 1, json.array {})
end


-- Each value once. The last one moves into the place of a duplicate, as upstream does it, who looks for those of the
-- first value, then for those of the second.
local function deduplicate(list)
  local places, last = {}, #list
  for i, value in ipairs(list) do
    places[value] = places[value] or {}
    table.insert(places[value], i)
  end
  local i = 1
  while i < last do
    local value = list[i]
    local own = places[value]
    if #own > 1 then
      table.sort(own)
    end
    for _, place in ipairs(own) do
      while place > i and place <= last and list[place] == value do
        local moved = list[last]
        list[place] = moved
        list[last] = nil
        last = last - 1
        if moved ~= value then
          table.insert(places[moved], place)
        end
      end
    end
    i = i + 1
  end
  return list
end


-- Does what the items with $patch ask for. Returns the original and the patch to merge.
local function special_items(original, patch, merge_key)
  local plain, gone, replace = json.array {}, {}, false
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
      gone[item[merge_key]] = true
    end
  end
  if replace then
    return plain, {}
  end
  local left = json.array {}
  for _, item in ipairs(original) do
    if item[merge_key] == nil or not gone[item[merge_key]] then
      left[#left + 1] = item
    end
  end
  return left, plain
end


local function merge_maps(original, patch, node, merge_key, merge_map)
  local place_of, added = order.places(original, merge_key), {}
  for _, item in ipairs(patch) do
    local value = item[merge_key]
    if value == nil then
      missing_key(item, merge_key)
    end
    local at = place_of(item) or added[value]
    if at then
      original[at] = merge_map(original[at], item, node)
      if original[at][merge_key] ~= value then -- $retainKeys has taken it
        place_of, added = order.places(original, merge_key), {}
      end
    else
      original[#original + 1] = item
      added[value] = #original
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
  local server_order = copy_of(original)
  local merged
  if M.element_type(original, patch) ~= "map" then
    merged = copy_of(original)
    table.move(patch, 1, #patch, #merged + 1, merged)
    merged = deduplicate(merged)
  else
    if not merge_key then
      failure.unexpected("cannot merge lists without merge key for struct")
    end
    original, patch = special_items(original, patch, merge_key)
    server_order = copy_of(original)
    merged = merge_maps(original, patch, node, merge_key, merge_map)
  end
  local named, others = order.partition(merged, patch, merge_key)
  return json.array(order.combine(named, others, patch, server_order, merge_key))
end


-- The items of a list, with functions to find and take out the first item of a key.
local function remaining(list, merge_key)
  local places, is_gone, stranger, count = {}, {}, nil, 0
  for i, item in ipairs(list) do
    if type(item) ~= "table" or json.is_array(item) then
      stranger = i
      break
    elseif item[merge_key] ~= nil then
      local key = item[merge_key]
      places[key] = places[key] or { next = 1 }
      table.insert(places[key], i)
    end
  end
  local self = {}

  -- Where the first item of the key stands, or nil. Raises a Status when something else stands before it.
  function self.find(key)
    local own = key ~= nil and places[key]
    local at = own and own[own.next]
    if not at and stranger then
      failure.unexpected(("value for key %d is not a map"):format(stranger - count - 1))
    end
    return at
  end

  function self.remove(at)
    local own = places[list[at][merge_key]]
    own.next = own.next + 1
    is_gone[at], count = true, count + 1
  end

  function self.is_gone(at)
    return is_gone[at]
  end
  return self
end


--- The order that the server's items count as having had when `patch` was merged into `list` and a $setElementOrder is
--- followed: upstream deletes and appends in the very array that it looks up afterwards, so that new items stand in the
--- places of those that went.
function M.order_after(list, patch, merge_key)
  local left, replace, last, behind = remaining(list, merge_key), false, #list, {}
  for _, item in ipairs(patch) do
    replace = replace or item["$patch"] == "replace"
    local at = item["$patch"] == "delete" and left.find(item[merge_key])
    if at then
      while left.is_gone(last) do
        last = last - 1
      end
      behind[#behind + 1] = list[last] -- what is moved to the front stays behind as well
      left.remove(at)
    end
  end
  local slots = json.array {}
  for i, item in ipairs(list) do
    if not left.is_gone(i) then
      slots[#slots + 1] = item
    end
  end
  local length, added = #slots, {}
  for i = 1, #behind do
    slots[#list + 1 - i] = behind[i]
  end
  for _, item in ipairs(replace and {} or patch) do
    local key = item[merge_key]
    local new = item["$patch"] == nil and not (key ~= nil and added[key]) and not left.find(key)
    if new and length == #list then
      break
    elseif new then
      length = length + 1
      slots[length] = item
      if key ~= nil then
        added[key] = true
      end
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


-- True if `wanted`, an item of an order list, names `item` of a patch.
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
