--- Sets of paths, in the form of managedFields (fieldsV1): a table by path element. In it an empty table is a path
--- of the set, and "." marks a path of the set that has other paths below it.
---
--- Sets are values: no function changes a set in place, sets share parts, and an operation that changes nothing
--- returns its argument.
--- Rules: structured-merge-diff fieldpath/set.go and serialize.go.
local element = require "cluster.apiserver.apply.element"

local M = {}

--- A path with nothing below it. Shared; never changed.
M.LEAF = {}

local LEAF = M.LEAF


local function is_member(node)
  return next(node) == nil or node["."] ~= nil
end


local function has_children(node)
  local key = next(node)
  return key ~= nil and (key ~= "." or next(node, key) ~= nil)
end


--- A table with the same elements, to be changed.
function M.copy(node)
  local result = {}
  for key, value in pairs(node) do
    result[key] = value
  end
  return result
end


-- A node with the children of `children` that is, or is not, a member itself; nil for neither.
local function build(children, member)
  if not has_children(children) then
    return member and LEAF or nil
  elseif member == (children["."] ~= nil) then
    return children
  end
  local result = M.copy(children)
  result["."] = member and LEAF or nil
  return result
end


local difference


local function node_difference(node, other)
  local member = is_member(node)
  local stays = member and not is_member(other)
  local children = difference(node, other)
  if children == node and stays == member then
    return node
  end
  return build(children, stays)
end


-- `combine(node, other)` for each path that both have; what it returns takes the node's place.
local function reduce(set, other, combine)
  local result = set
  for key, value in pairs(other) do
    local node = key ~= "." and set[key]
    local rest = node and combine(node, value)
    if rest ~= node then
      result = result == set and M.copy(set) or result
      result[key] = rest
    end
  end
  return result
end


--- The paths of `set` that `other` does not have. Paths below a path that goes away stay.
function difference(set, other)
  return reduce(set, other, node_difference)
end


M.difference = difference


local function node_without(node, other)
  if is_member(other) then
    return nil
  end
  local children = M.without(node, other)
  return children == node and node or build(children, is_member(node))
end


--- The paths of `set` that are not in `other` nor below one that is.
function M.without(set, other)
  return reduce(set, other, node_without)
end


--- The union of two nodes, each the part of a set below one element.
function M.node_union(node, other)
  if node == nil or node == other then
    return other
  elseif next(other) == nil then
    return is_member(node) and node or build(node, true)
  elseif next(node) == nil then
    return is_member(other) and other or build(other, true)
  end
  return M.union(node, other)
end


--- The paths of either set.
function M.union(set, other)
  if next(set) == nil then
    return other
  end
  local result = set
  for key, value in pairs(other) do
    local node = set[key]
    local both = key == "." and LEAF or M.node_union(node, value)
    if both ~= node then
      result = result == set and M.copy(set) or result
      result[key] = both
    end
  end
  return result
end


--- The paths of both sets.
function M.intersection(set, other)
  local result = {}
  for key, value in pairs(other) do
    local node = key ~= "." and set[key]
    if node then
      result[key] = build(M.intersection(node, value), is_member(node) and is_member(value))
    end
  end
  return result
end


--- Returns true if `set` has no path.
function M.is_empty(set)
  return next(set) == nil
end


--- Returns true if the path, a list of elements, belongs to `set`.
function M.has(set, path)
  local node = set
  for _, key in ipairs(path) do
    node = node[key]
    if not node then
      return false
    end
  end
  return node ~= set and is_member(node)
end


--- The set of the one path that `path` is, a list of elements.
function M.of(path)
  local node = LEAF
  for i = #path, 1, -1 do
    node = { [path[i]] = node }
  end
  return node
end


local function sorted_elements(node)
  local keys = {}
  for key in pairs(node) do
    if key ~= "." then
      keys[#keys + 1] = key
    end
  end
  table.sort(keys, element.before)
  return keys
end


--- The paths of `set` as messages show them (".data.key"): those of one level before those below it.
function M.paths(set)
  local result = {}
  local function visit(node, prefix)
    local keys = sorted_elements(node)
    for _, key in ipairs(keys) do
      if is_member(node[key]) then
        result[#result + 1] = prefix .. element.show(key)
      end
    end
    for _, key in ipairs(keys) do
      visit(node[key], prefix .. element.show(key))
    end
  end
  visit(set, "")
  return result
end


--- `set`, and the declared fields of `kind` (a type) on the way to its paths.
function M.with_fields(set, kind)
  local result = {}
  for key, node in pairs(set) do
    if key ~= "." then
      local map, list = kind and kind.map, kind and kind.list
      local name = key:sub(1, 2) == "f:" and key:sub(3)
      local field = name and map and map.fields[name]
      local child = field or (name and map and map.element) or (not name and list and list.element) or nil
      result[key] = build(M.with_fields(node, child), is_member(node) or field ~= nil)
    end
  end
  return result
end


--- A set out of a decoded fieldsV1 that a client sent, each element in its one spelling. Elements of unknown
--- kinds are left out. Raises a message when it is malformed.
function M.read(raw)
  if type(raw) ~= "table" then
    error("expected an object of fields", 0)
  end
  local result = {}
  for key, value in pairs(raw) do
    local name = key == "." and key or element.canonical(tostring(key))
    if name == "." then
      result["."] = LEAF
    elseif name then
      result[name] = M.read(value)
    end
  end
  if result["."] and not has_children(result) then
    return {}
  end
  return result
end


return M
