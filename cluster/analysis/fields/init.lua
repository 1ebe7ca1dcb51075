--- Reads of fields that a kind does not have, `db.spec.verison`: told by `moonloop check` (host/cli/check.c) and
--- `moonloop dev` (cluster/host/dev.c).
---
--- Lua gives nil for such a field, and nothing else would tell. The text of a script is read, never run. Only what its
--- text says beyond doubt is told (types.lua). A name that the text gives to a field itself is never told: a script may
--- keep what it likes in its copy of an object.
local builtin = require "cluster.apiserver.schema.builtin"
local host = require "cluster.host"
local names = require "moonloop.names"
local parser = require "cluster.analysis.fields.parser"
local types = require "cluster.analysis.fields.types"

local M = {}

-- May tables get fields by names that do not stand behind a dot? Then any name in the text may be one.
local function gives_fields(parsed)
  for _, target in ipairs(parsed.filled) do
    local value = target.tag == "variable" and not target.variable.is_assigned and target.variable.value
    if not value or value.tag ~= "table" then
      return true
    end
  end
  for _, call in ipairs(parsed.calls) do
    local name = call.callee.tag == "global" and call.callee.name
    if name == "rawset" or name == "setmetatable" then
      return true
    end
  end
  return false
end


local function sorted(properties)
  local list = {}
  for name in pairs(properties) do
    list[#list + 1] = name
  end
  table.sort(list)
  return table.concat(list, " ")
end


local function problem(file, read, object, properties)
  local path = object.path == "" and read.name or object.path .. "." .. read.name
  local nearest = names.nearest(read.name, sorted(properties))
  local hint = nearest and ("; did you mean '%s'?"):format(nearest) or ""
  return ("%s:%d: %s has no field '%s'%s"):format(file, read.line, object.of, names.text(path), hint)
end


--- The problems of a text that compiles, in the order of the text, each { file =, text = "x.lua:12: …" }; and the kinds
--- that it names: "apps/v1/Deployment" → whether its schema is known.
function M.of_text(file, text, schema_of)
  local parsed = parser.parse(text)
  local found, reported_lines, list = types.new(parsed, schema_of), {}, {}
  local any = gives_fields(parsed)
  for _, read in ipairs(parsed.reads) do
    local object = found:of(read.of)
    local properties
    if object and object.schema and not parsed.assigned[read.name] and not (any and parsed.words[read.name]) then
      properties = select(2, types.field(object, read.name))
    end
    local line = properties and problem(file, read, object, properties)
    if line and not reported_lines[line] then
      reported_lines[line] = true
      list[#list + 1] = { file = file, text = line }
    end
  end
  return list, found.kinds
end


-- The value below; nil where something on the way is no table.
local function below(value, ...)
  for _, key in ipairs { ... } do
    value = type(value) == "table" and value[key] or nil
  end
  return value
end


local function list_of(value)
  return ipairs(type(value) == "table" and value or {})
end


local function add_definitions(known, manifest)
  local spec = below(manifest, "kind") == "CustomResourceDefinition" and manifest.spec
  for _, version in list_of(below(spec, "versions")) do
    local schema = below(version, "schema", "openAPIV3Schema")
    local key = ("%s/%s/%s"):format(spec.group, below(version, "name"), below(spec, "names", "kind"))
    known[key] = type(schema) == "table" and schema or nil
  end
  for _, item in list_of(below(manifest, "items")) do
    add_definitions(known, item) -- a List, as `kubectl get crd -o yaml` prints it
  end
end


--- As of_text, for a file { name =, text = }. If the text cannot be read, there are no problems: its loader says so.
function M.check_text(file, schema_of)
  if not load(file.text, "=script", "t") then
    return {}, {}
  end
  local is_read, problems, kinds = pcall(M.of_text, file.name, file.text, schema_of)
  if not is_read then
    return {}, {} -- too deep for the stack
  end
  return problems, kinds
end


--- Where the schemas of kinds come from: the built-in ones, and the CRDs among the manifests.
--- @return function(group, version, kind) → schema, or nil
--- @return table set of the kinds of the CRDs, "example.com/v1/Thing"
function M.schemas(manifests)
  local known, kinds = {}, {}
  for _, manifest in ipairs(manifests) do
    add_definitions(known, manifest)
  end
  for kind in pairs(known) do
    kinds[kind] = true
  end
  return function(group, version, kind)
    return known[("%s/%s/%s"):format(group, version, kind)] or builtin.of(group, version, kind)
  end, kinds
end


--- @param options table { files = { { name =, text = }, … }, manifests = those among which are the CRDs }
--- @return table list of { file =, text = "database.lua:12: Database of example.com/v1 has no field …" }
function M.check(options)
  local schema_of, problems = M.schemas(options.manifests), host.json.array {}
  for _, file in ipairs(options.files) do
    local list = M.check_text(file, schema_of)
    table.move(list, 1, #list, #problems + 1, problems)
  end
  return problems
end


return M
