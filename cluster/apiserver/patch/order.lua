--- The order of merged lists: items that the patch names come in the patch's order, other items keep their
--- order.
--- Rules: apimachinery/pkg/util/strategicpatch/patch.go normalizeElementOrder and what it calls.
local M = {}


-- Stands for the key of an item that has none.
local NONE = {}


--- Where the items of a list stand. Lists may have thousands of items, so each is looked for in no time.
--- @param merge_key string|nil nil for lists of scalars
--- @return function(value) the index of the first item that is `value`, or has the same key; nil when there is none
function M.places(list, merge_key)
  local places = {}
  for i, item in ipairs(list) do
    local key = item
    if merge_key then
      key = type(item) == "table" and (item[merge_key] == nil and NONE or item[merge_key]) or nil
    end
    if key ~= nil and not places[key] then
      places[key] = i
    end
  end
  return function(value)
    if not merge_key then
      return places[value]
    end
    local key = value[merge_key]
    return places[key == nil and NONE or key]
  end
end


-- Sorts by the place in `order`. Items that are not in `order` stand before those that had come when they came, as
-- upstream's comparison makes it: the later one first.
local function sort_by(items, order, merge_key)
  local place_of, known, unknown, least = M.places(order, merge_key), {}, {}, math.huge
  for i, item in ipairs(items) do
    local place = place_of(item)
    if place then
      known[#known + 1] = { item = item, place = place, number = i }
      least = math.min(least, place)
    else
      unknown[least] = unknown[least] or {}
      table.insert(unknown[least], item)
    end
  end
  table.sort(known, function(left, right)
    if left.place ~= right.place then
      return left.place < right.place
    end
    return left.number < right.number
  end)
  local count = 0
  local function put_unknown(before)
    for i = #(unknown[before] or {}), 1, -1 do
      count = count + 1
      items[count] = unknown[before][i]
    end
    unknown[before] = nil
  end
  for _, one in ipairs(known) do
    put_unknown(one.place)
    count = count + 1
    items[count] = one.item
  end
  put_unknown(math.huge)
end


--- Splits `items` into those that `by` has too, and the others.
function M.partition(items, by, merge_key)
  local named, others, place_of = {}, {}, M.places(by, merge_key)
  for _, item in ipairs(items) do
    local part = place_of(item) and named or others
    part[#part + 1] = item
  end
  return named, others
end


--- Brings `named` into the order of `patch_order` and `others` into that of `server_order`, and returns
--- both in one list. `merge_key` is nil for lists of scalars.
function M.combine(named, others, patch_order, server_order, merge_key)
  sort_by(named, patch_order, merge_key)
  sort_by(others, server_order, merge_key)
  local result, i, j, place_of = {}, 1, 1, M.places(server_order, merge_key)
  while i <= #others or j <= #named do
    local take_other = j > #named
    if i <= #others and j <= #named then
      local left, right = place_of(others[i]), place_of(named[j])
      take_other = left and right and left < right
    end
    if take_other then
      result[#result + 1], i = others[i], i + 1
    else
      result[#result + 1], j = named[j], j + 1
    end
  end
  return result
end


return M
