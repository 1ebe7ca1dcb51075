-- Plain-table objects: copies, comparison, merge patches, and the way a script reads what is
-- absent. For the test world.
local pure = require "moonloop.pure"

local M = {}

local function refuse(field)
  return function()
    error(("the object has no %s yet: it is returned from reconcile or set as a whole"):format(field), 2)
  end
end


-- A table whose absent `fields` read as empty tables that cannot be filled, as the host does it.
local function forgiving(value, fields)
  return setmetatable(value, {
    __index = function(_, key)
      return fields[key] and setmetatable({}, { __newindex = refuse(key) }) or nil
    end,
  })
end


--- A copy that shares nothing with `value`. Lists stay marked as lists.
function M.copy(value)
  if type(value) ~= "table" or rawequal(value, pure.null) then
    return value
  end
  local copy = pure.is_array(value) and pure.array {} or {}
  for key, field in next, value do
    copy[key] = M.copy(field)
  end
  return copy
end


--- A copy as a reconcile sees it.
function M.view(object)
  local view = M.copy(object)
  forgiving(view.metadata, { labels = true, annotations = true })
  return forgiving(view, { spec = true, status = true })
end


function M.equal(a, b)
  if type(a) ~= "table" or type(b) ~= "table" then
    return rawequal(a, b)
  end
  for key, value in next, a do
    if not M.equal(value, rawget(b, key)) then
      return false
    end
  end
  for key in next, b do
    if rawget(a, key) == nil then
      return false
    end
  end
  return true
end


--- `target` with `patch` merged over it (RFC 7386), as a new table.
function M.merge(target, patch)
  if type(patch) ~= "table" or pure.is_array(patch) or #patch > 0 then
    return M.copy(patch)
  end
  local merged = type(target) == "table" and M.copy(target) or {}
  for key, value in next, patch do
    if rawequal(value, pure.null) then
      merged[key] = nil
    else
      merged[key] = M.merge(merged[key], value)
    end
  end
  return merged
end


--- "v1/Pod default/name": what an object is known by.
function M.key(api_version, kind, namespace, name)
  return ("%s/%s %s%s"):format(api_version, kind, namespace and namespace .. "/" or "", name)
end


--- The reference of the controller that owns the object, if there is one.
function M.controller_of(object)
  for _, reference in ipairs(object.metadata.ownerReferences or {}) do
    if reference.controller then
      return reference
    end
  end
end


return M
