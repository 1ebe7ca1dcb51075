--- Merges an applied configuration into an object, and removes paths from an object.
--- Rules: structured-merge-diff typed/merge.go and typed/remove.go.
local element = require "cluster.apiserver.apply.element"
local host = require "cluster.host"

local json = host.json
local null = json.null
local is_array = json.is_array
local of_item = element.of_item

local M = {}

local merge


-- `value` when it is a map (array: a list), else an empty one.
local function content(value, array)
  if type(value) ~= "table" or is_array(value) ~= array then
    return {}
  end
  return value
end


local function merge_maps(map, live, applied)
  local result = {}
  for name, value in pairs(live) do
    result[name] = merge(map.fields[name] or map.element, value, applied[name])
  end
  for name, value in pairs(applied) do
    if live[name] == nil then
      result[name] = merge(map.fields[name] or map.element, nil, value)
    end
  end
  return next(result) ~= nil and result or nil
end


-- The elements of a list in order, and its items by element. An item whose element comes again counts as null.
local function index(list, items)
  local keys, found = {}, {}
  for i, item in ipairs(items) do
    local key, message = of_item(list, item)
    keys[i] = key or error(message, 0)
    if found[key] == nil then
      found[key] = item
    else
      found[key] = null
    end
  end
  return keys, found
end


-- One merge of two lists: the live items that are not applied keep their places between the applied ones, which
-- come in their own order.
local Zipper = {}
Zipper.__index = Zipper


function Zipper:take_applied()
  local key = self.applied_keys[self.right]
  self.right = self.right + 1
  self.merged[key] = true
  self:put(merge(self.element, self.live_items[key], self.applied_items[key]))
  return key
end


function Zipper:put(value)
  if value ~= nil then
    self.result[#self.result + 1] = value
  end
end


function Zipper:next_shared()
  self.shared = self.shared + 1
end


-- Deals with a live item. Returns true when the step is done with it, false to go on to the applied one.
function Zipper:step_live()
  local key = self.live_keys[self.left]
  local wanted = self.applied_keys[self.right]
  if key ~= nil and wanted ~= nil then
    if key == wanted then
      self:take_applied()
      self.left = self.left + 1
      self:next_shared()
      return true
    end
    local shared = self.order[self.shared]
    if self.applied_items[key] ~= nil and shared and shared ~= key then
      self.left = self.left + 1
      return true
    end
  end
  if key == nil then
    return false
  elseif self.applied_items[key] == nil then
    self:put(merge(self.element, self.live[self.left], nil))
    self.left = self.left + 1
    return true
  elseif self.merged[key] then
    self.left = self.left + 1
  end
  return false
end


function Zipper:run()
  while self.left <= #self.live_keys or self.right <= #self.applied_keys do
    if not self:step_live() and self.right <= #self.applied_keys then
      local key = self:take_applied()
      if self.order[self.shared] == key then
        self:next_shared()
      end
    end
  end
  return #self.result > 0 and self.result or nil
end


local function merge_lists(list, live, applied)
  local applied_keys, applied_items = index(list, applied)
  local live_keys, live_items = index(list, live)
  local order = {}
  for _, key in ipairs(applied_keys) do
    if live_items[key] ~= nil then
      order[#order + 1] = key
    end
  end
  return setmetatable({
    element = list.element,
    live = live,
    live_keys = live_keys,
    live_items = live_items,
    applied_keys = applied_keys,
    applied_items = applied_items,
    order = order,
    shared = 1,
    left = 1,
    right = 1,
    merged = {},
    result = json.array {},
  }, Zipper):run()
end


-- The side of `kind` that decides, by the applied value, or by the live one when that has no shape.
local function side_of(kind, live, applied)
  local shape = type(applied) == "table" and applied or (applied == nil or applied == null) and live
  if type(shape) ~= "table" then
    return nil, nil
  elseif is_array(shape) then
    return nil, kind.list
  end
  return kind.map, nil
end


function merge(kind, live, applied)
  local leaf = applied
  if leaf == nil then
    leaf = live
  end
  if not kind then
    return leaf
  end
  local map, list = side_of(kind, live, applied)
  local side = map or list
  if side and not side.atomic then
    local before, after = content(live, list ~= nil), content(applied, list ~= nil)
    if next(before) ~= nil or next(after) ~= nil then
      return (map and merge_maps or merge_lists)(side, before, after)
    end
  end
  return leaf
end


--- The object that `live` becomes when `applied` is put into it; both of the type `kind`. Shares parts with both.
--- Raises a message when an item of a list has no key.
function M.merge(kind, live, applied)
  return merge(kind, live, applied) or {}
end


local function remove_items(list, items, paths)
  local result = json.array {}
  for _, item in ipairs(items) do
    local key = of_item(list, item)
    local node = paths[key]
    if not node then
      result[#result + 1] = item
    elseif next(node) ~= nil and not node["."] then
      result[#result + 1] = M.remove(list.element, item, node) or null
    end
  end
  return #result > 0 and result or nil
end


local function remove_members(map, object, paths)
  local result = {}
  for name, value in pairs(object) do
    local node = paths["f:" .. name]
    if not node then
      result[name] = value
    elseif next(node) ~= nil and not node["."] then
      result[name] = M.remove(map.fields[name] or map.element, value, node) or null
    end
  end
  return next(result) ~= nil and result or nil
end


--- `value` of the type `kind` without the set `paths`: nil when nothing is left, null below that. Shares parts with
--- `value`.
function M.remove(kind, value, paths)
  if type(value) ~= "table" or not kind then
    return value
  end
  local side = is_array(value) and kind.list or kind.map
  if not side or side.atomic or next(value) == nil then
    return nil
  end
  local run = is_array(value) and remove_items or remove_members
  return run(side, value, paths)
end


return M
