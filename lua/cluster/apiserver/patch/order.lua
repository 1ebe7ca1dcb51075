--- The order of merged lists: items that the patch names come in the patch's order, other items keep their
--- order.
--- Rules: apimachinery/pkg/util/strategicpatch/patch.go normalizeElementOrder and what it calls.
local M = {}


-- Where `value` (an item, or an object with the same key) stands in `list`; nil when it is not there.
local function index_of(list, value, merge_key)
  local wanted = merge_key and value[merge_key]
  for i, item in ipairs(list) do
    if not merge_key and item == value then
      return i
    end
    if merge_key and type(item) == "table" and item[merge_key] == wanted then
      return i
    end
  end
  return nil
end


-- Sorts by the place in `order`. An item that is not in `order` goes before what stands ahead of it, as
-- upstream's comparison makes it: with insertion, so that equal inputs end the same way.
local function sort_by(items, order, merge_key)
  local places = {}
  for _, item in ipairs(items) do
    places[item] = index_of(order, item, merge_key)
  end
  for i = 2, #items do
    local j = i
    while j > 1 do
      local here, before = places[items[j]], places[items[j - 1]]
      if here and before and here >= before then
        break
      end
      items[j], items[j - 1] = items[j - 1], items[j]
      j = j - 1
    end
  end
end


--- Splits `items` into those that `by` has too, and the others.
function M.partition(items, by, merge_key)
  local named, others = {}, {}
  for _, item in ipairs(items) do
    local part = index_of(by, item, merge_key) and named or others
    part[#part + 1] = item
  end
  return named, others
end


--- Brings `named` into the order of `patch_order` and `others` into that of `server_order`, and returns
--- both in one list. `merge_key` is nil for lists of scalars.
function M.combine(named, others, patch_order, server_order, merge_key)
  sort_by(named, patch_order, merge_key)
  sort_by(others, server_order, merge_key)
  local result, i, j = {}, 1, 1
  while i <= #others or j <= #named do
    local take_other = j > #named
    if i <= #others and j <= #named then
      local left = index_of(server_order, others[i], merge_key)
      local right = index_of(server_order, named[j], merge_key)
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
