--- The paths of an object, and the differences between two objects.
--- Rules: structured-merge-diff typed/tofieldset.go and typed/compare.go.
local element = require "cluster.apiserver.apply.element"
local host = require "cluster.host"
local set = require "cluster.apiserver.apply.set"

local json = host.json
local null = json.null
local is_array = json.is_array
local of_item = element.of_item
local LEAF = set.LEAF

local M = {}


-- The side of `kind` that `value` takes, a map or a list; nil for scalars and for what the type does not allow.
local function sides(kind, value)
  if type(value) ~= "table" then
    return nil, nil
  elseif is_array(value) then
    return nil, kind.list
  end
  return kind.map, nil
end


local function element_of(list, item)
  local key, message = of_item(list, item)
  return key or error(message, 0)
end


-- The element of an item that has none: what pruning leaves of an item can lack its key for a while.
local NAMELESS = "?"


-- Items by element. An element that comes again has a list of its items in the second table. `element_for(list, item)`
-- gives the elements.
local function index(list, items, element_for)
  local found, again, order = {}, nil, {}
  for i = 1, #items do
    local item = items[i]
    local key = element_for(list, item) or NAMELESS
    if found[key] == nil then
      found[key], order[#order + 1] = item, key
    else
      again = again or {}
      again[key] = again[key] or json.array { found[key] }
      again[key][#again[key] + 1] = item
    end
  end
  return found, again, order
end


local node_of


local function whole_list(list, items)
  local node = { ["."] = LEAF }
  for i = 1, #items do
    local item = items[i]
    local key = element_of(list, item)
    node[key] = node[key] and LEAF or node_of(list.element, item)
  end
  return node
end


local function whole_map(map, object)
  local fields, labels, other = map.fields, map.labels, map.element
  local node = { ["."] = LEAF }
  for name, value in next, object do
    local field = fields[name] or other
    local label = labels[name] or "f:" .. name
    node[label] = type(value) == "table" and node_of(field, value) or LEAF
  end
  return node
end


-- The node of a value that only one of two objects has: all paths of it, those on the way included.
function node_of(kind, value)
  if type(value) ~= "table" or not kind or next(value) == nil then
    return LEAF
  end
  local map, list = sides(kind, value)
  if map and not map.atomic then
    return whole_map(map, value)
  elseif list and not list.atomic then
    return whole_list(list, value)
  end
  return LEAF
end


local compare


-- Adds to the nodes `changed` and `removed`, made when needed, what differs under one element.
local function record(changed, removed, key, kind, old, new)
  local more, less
  if old == nil then
    more = node_of(kind, new)
  elseif new == nil then
    less = node_of(kind, old)
  else
    more, less = compare(kind, old, new)
  end
  if more then
    changed = changed or {}
    changed[key] = more
  end
  if less then
    removed = removed or {}
    removed[key] = less
  end
  return changed, removed
end


local function compare_maps(map, old, new)
  local fields, labels, other = map.fields, map.labels, map.element
  local changed, removed
  for name, value in next, new do
    local before = old[name]
    if value ~= before then
      changed, removed = record(changed, removed, labels[name] or "f:" .. name, fields[name] or other, before, value)
    end
  end
  for name, before in next, old do
    if new[name] == nil then
      changed, removed = record(changed, removed, labels[name] or "f:" .. name, fields[name] or other, before, nil)
    end
  end
  return changed, removed
end


-- An element that comes more than once in one of the lists is one leaf there.
local function compare_repeated(list, key, old, new, changed, removed)
  changed, removed = changed or {}, removed or {}
  if old.again and new.again then
    if not json.equal(old.again, new.again) then
      changed[key] = LEAF
    end
  elseif old.again then
    removed[key] = LEAF
    changed[key] = new.first ~= nil and node_of(list.element, new.first) or nil
  else
    changed[key] = LEAF
    removed[key] = old.first ~= nil and node_of(list.element, old.first) or nil
  end
  return next(changed) and changed, next(removed) and removed
end


local function compare_lists(list, old, new)
  local before, before_again, order = index(list, old, element_of)
  local after, after_again, after_order = index(list, new, element_of)
  local changed, removed
  for i = 1, #after_order do
    if before[after_order[i]] == nil then
      order[#order + 1] = after_order[i]
    end
  end
  for i = 1, #order do
    local key = order[i]
    local again_old = before_again and before_again[key]
    local again_new = after_again and after_again[key]
    if again_old or again_new then
      changed, removed = compare_repeated(list, key, { first = before[key], again = again_old },
        { first = after[key], again = again_new }, changed, removed)
    elseif before[key] ~= after[key] then
      changed, removed = record(changed, removed, key, list.element, before[key], after[key])
    end
  end
  return changed, removed
end


local EMPTY = {}


-- `value` when it has this shape and something in it, else the empty table.
local function content(value, array)
  if type(value) ~= "table" or is_array(value) ~= array then
    return EMPTY
  end
  return value
end


-- Compares by one side of a type, in which values of another shape count as empty.
local function compare_as(map, list, old, new)
  local side = map or list
  if side and not side.atomic then
    local before, after = content(old, list ~= nil), content(new, list ~= nil)
    if next(before) ~= nil or next(after) ~= nil then
      local run = map and compare_maps or compare_lists
      return run(side, before, after)
    end
  end
  return not json.equal(old, new) and LEAF or nil, nil
end


-- Returns the nodes of `new` that are new or changed, and the nodes of `old` that are gone; nil for an empty set.
function compare(kind, old, new)
  if type(old) ~= "table" and type(new) ~= "table" then
    return old ~= new and LEAF or nil, nil
  elseif not kind then
    return not json.equal(old, new) and LEAF or nil, nil
  end
  local map, list = sides(kind, new)
  local old_map, old_list = sides(kind, old)
  if new == null then
    return compare_as(old_map, old_list, old, new)
  elseif old == null or (map == old_map and list == old_list) then
    return compare_as(map, list, old, new)
  end
  local more, less = compare_as(old_map, old_list, old, new)
  local more_too, less_too = compare_as(map, list, old, new)
  return more and more_too and set.node_union(more, more_too) or more or more_too, less or less_too
end


--- Compares the objects `old` and `new` of the type `kind`.
--- Returns two sets: paths that are new or have another value, and paths that are gone.
--- Raises a message when an item of a list has no key.
function M.compare(kind, old, new)
  local changed, removed = compare_maps(kind.map, old, new)
  return changed or {}, removed or {}
end


local collect


local function collect_list(list, items)
  local node = {}
  local found, again, order = index(list, items, of_item)
  for i = 1, #order do
    local key = order[i]
    local below = not (again and again[key]) and collect(list.element, found[key])
    if below and next(below) ~= nil then
      below["."] = LEAF
      node[key] = below
    else
      node[key] = LEAF
    end
  end
  return node
end


local function collect_map(map, object)
  local node = {}
  for name, value in next, object do
    local field = map.fields[name]
    local below = collect(field or map.element, value)
    local label = map.labels[name] or "f:" .. name
    if below == LEAF then
      node[label] = LEAF
    elseif next(below) == nil then
      node[label] = (not field or (not is_array(value) and next(value) == nil)) and LEAF or nil
    else
      below["."] = not field and LEAF or nil
      node[label] = below
    end
  end
  return node
end


-- The node of a value in an applied configuration: leaves and items, but not the declared fields above them.
-- LEAF for what is one leaf.
function collect(kind, value)
  if type(value) ~= "table" or not kind then
    return LEAF
  end
  local map, list = sides(kind, value)
  if map and not map.atomic then
    return collect_map(map, value)
  elseif list and not list.atomic then
    return collect_list(list, value)
  end
  return LEAF
end


--- The set of paths that the object `value` of the type `kind` has: what who applies it says something about.
function M.paths(kind, value)
  return collect_map(kind.map, value)
end


return M
