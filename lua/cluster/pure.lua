-- What the host gives the library, made of plain tables: lets scripts and the library load in
-- plain Lua 5.4 for specs. Not part of the binary.
local M = { require = require, getmetatable = debug.getmetatable }

local kind_mark, array_mark, controller_mark = {}, {}, {}

function kind_mark.__tostring(kind)
  return kind.apiVersion .. "/" .. kind.kind
end


function kind_mark.__eq(a, b)
  return a.apiVersion == b.apiVersion and a.kind == b.kind
end


M.null = setmetatable({}, { __tostring = function() return "null" end })

-- Selectors are checked by the host alone.
function M.kind(api_version, kind, labels, fields, metadata_only)
  if type(api_version) ~= "string" or type(kind) ~= "string" or not kind:match("^%u%w*$") then
    return nil, 'expected an API version and a kind, as in moonloop.kind("apps/v1", "Deployment")'
  end
  return setmetatable({
    apiVersion = api_version, kind = kind, labels = labels, fields = fields, metadata_only = metadata_only,
  }, kind_mark)
end


function M.is_kind(value)
  return getmetatable(value) == kind_mark
end


-- A table with the same entries, which no metamethod is asked for.
function M.copy(value)
  local copy = {}
  for key, entry in next, value do
    copy[key] = entry
  end
  return copy
end


function M.array(list)
  return setmetatable(list or {}, array_mark)
end


function M.is_array(value)
  return getmetatable(value) == array_mark
end


function M.controller(checked)
  return setmetatable(checked, controller_mark)
end


return M
