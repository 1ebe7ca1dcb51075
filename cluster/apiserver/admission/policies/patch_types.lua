--- The types that expressions of mutations make values of: `Object`, `Object.spec` and so on, the parts of an object;
--- and `JSONPatch`, an operation. Their fields may have any value.
---
--- Rules and wordings: apiserver/pkg/cel/mutation/{typeresolver,jsonpatch,dynamic/objects}.go.
local cel = require "cluster.cel"
local host = require "cluster.host"

local M = {}

local types, values = cel.types, cel.values

local ANY = { type = types.dyn }
local TEXT = { type = types.string }

local PATCH_FIELDS = { op = TEXT, path = TEXT, from = TEXT, value = ANY }
local NO_FIELD = { type = types.object "" } -- nothing is of this type

local JSON_PATCH = types.object("JSONPatch", function(name)
  return PATCH_FIELDS[name] or NO_FIELD
end)

-- Name → type. Weak: expressions make them up.
local parts = setmetatable({}, { __mode = "v" })


local function any_field()
  return ANY
end


--- The type of that name, or nil.
function M.resolve(name)
  if name == "JSONPatch" then
    return JSON_PATCH
  elseif name ~= "Object" and not name:find "^Object%." then
    return nil
  end
  local part = parts[name] or types.object(name, any_field)
  parts[name] = part
  return part
end


--- The types of the values that the expressions of the two kinds of mutations must give.
M.OBJECT = { M.resolve "Object" }
M.JSON_PATCHES = { types.list(JSON_PATCH) }


-- The parts of an object have the names of their places in it. @return string|nil what is wrong
local function misnamed(value, path)
  local tag, why = values.tag(value), nil
  if tag == "object" then
    if value.type.name ~= path then
      return ('unexpected type name "%s", expected "%s", which matches field name path from root Object type'):format(
        value.type.name, path)
    end
    for name, item in pairs(value.items) do
      why = why or misnamed(item, path .. "." .. name)
    end
  elseif tag == "list" or tag == "map" then
    for _, item in pairs(value.items) do
      why = why or not value.convert and misnamed(item, path) or nil
    end
  end
  return why
end


local function check_names(value)
  local why = values.tag(value) == "object" and misnamed(value, value.type.name)
  return why and "type mismatch: " .. why or nil
end


--- The JSON of an `Object`. @return table|nil part, or nil and a message
function M.part(value)
  local why = check_names(value)
  if why then
    return nil, why
  end
  return cel.to_json(value)
end


--- The operations of a list of `JSONPatch`. @return list|nil of JSON, or nil and what is wrong
function M.operations(list)
  local operations = host.json.array {}
  for i, patch in ipairs(values.elements(list)) do
    local fields = patch.items
    local why = fields.value ~= nil and check_names(fields.value)
    if why then
      return nil, why
    end
    operations[i] = {
      op = fields.op or "", path = fields.path or "", from = (fields.from or "") ~= "" and fields.from or nil,
      value = fields.value ~= nil and cel.to_json(fields.value) or nil,
    }
  end
  return operations
end


return M
