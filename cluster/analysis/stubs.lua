--- Makes the text of `moonloop types` (cluster/cli/types.c): the kinds of scripts as classes for lua-language-server,
--- which then completes the fields of an object, and marks those that do not exist.
local analysis = require "analysis"
local builtin = require "cluster.apiserver.schema.builtin"
local schemas = require "cluster.analysis.schemas"

local M = {}

local SCALARS = { string = "string", integer = "integer", number = "number", boolean = "boolean", object = "table" }

local class_of

-- The type of a value, as lua-language-server writes it. `name` is for a class of its own.
local function type_text(out, schema, name)
  if type(schema) ~= "table" or schema["x-kubernetes-preserve-unknown-fields"] then
    return "any"
  elseif schema["x-kubernetes-int-or-string"] then
    return "integer|string"
  elseif type(schema.items) == "table" then
    return ("(%s)[]"):format(type_text(out, schema.items, name))
  elseif type(schema.properties) == "table" then
    return class_of(out, schema, name)
  elseif type(schema.additionalProperties) == "table" then
    return ("table<string, %s>"):format(type_text(out, schema.additionalProperties, name))
  end
  return schema["x-go-type"] == "Quantity" and "string" or SCALARS[schema.type] or "any"
end


local function description(schema)
  local text = type(schema) == "table" and type(schema.description) == "string" and schema.description
  return text and " " .. text:gsub("%c+", " ") or ""
end


-- Adds a class, once, and returns its name. Classes of Kubernetes itself have their own names: "core.PodSpec".
function class_of(out, schema, name, parent)
  local record = not parent and builtin.record_of(schema)
  name = record and record.package.alias .. "." .. record.name or name:gsub("[^%w._-]", "_")
  if out.classes[name] then
    return name
  end
  out.classes[name] = true
  local lines, keys, required = {}, {}, {}
  for _, key in ipairs(type(schema.required) == "table" and schema.required or {}) do
    required[key] = true
  end
  for key in pairs(schema.properties) do
    keys[#keys + 1] = key
  end
  table.sort(keys)
  for _, key in ipairs(keys) do
    local is_there = required[key] or parent and (key == "spec" or key == "status") -- an empty table, else
    local has_own = parent and (key == "metadata" or key == "apiVersion" or key == "kind")
    local word = key:match "^[%a_][%w_]*$" or ("['%s']"):format(key:gsub("['\\%c]", ""))
    local property = schema.properties[key]
    lines[#lines + 1] = not has_own and ("---@field %s%s %s%s"):format(
      word, is_there and "" or "?", type_text(out, property, name .. "." .. key), description(property)) or nil
  end
  local head = ("---@class %s%s"):format(name, parent and ": " .. parent or "")
  out[#out + 1] = head .. "\n" .. table.concat(lines, "\n") .. (#lines > 0 and "\n" or "")
  return name
end


-- The files whose texts compile: the loader says what is wrong with the others.
local function compiling(files)
  local list = {}
  for _, file in ipairs(files) do
    list[#list + 1] = load(file.text, "=script", "t") and file or nil
  end
  return list
end


--- The file of stubs.
--- @param options table { files = { { name =, text = }, … }, manifests = those among which are the CRDs }: the kinds of
---   the CRDs, and those that the texts name
--- @return table { text =, unknown = list of the kinds whose schema is not known: "example.com/v1/Thing" }
function M.render(options)
  local schema_of, kinds = schemas.reader(options.manifests)
  local out, unknown = { classes = {} }, {}
  for _, kind in ipairs(analysis.kinds(compiling(options.files))) do
    kinds[(kind.group == "" and "" or kind.group .. "/") .. kind.version .. "/" .. kind.kind] = true
  end
  local sorted = {}
  for kind in pairs(kinds) do
    sorted[#sorted + 1] = kind
  end
  table.sort(sorted)
  for _, kind in ipairs(sorted) do
    local schema = schema_of(kind:match "^(.-)/?([^/]+)/([^/]+)$")
    if schema and type(schema.properties) == "table" then
      class_of(out, schema, (kind:gsub("/", ".")), "moonloop.Object")
    elseif not schema then
      unknown[#unknown + 1] = kind
    end
  end
  return {
    text = "---@meta\n-- Kinds as lua-language-server sees them. Made by: moonloop types\n-- luacheck: ignore\n\n"
      .. table.concat(out, "\n"),
    unknown = unknown,
  }
end


return M
