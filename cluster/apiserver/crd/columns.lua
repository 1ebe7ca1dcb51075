--- The printer columns of a custom kind.
---
--- Rules: apiextensions-apiserver/pkg/registry/customresource/tableconvertor/tableconvertor.go.
local age = require "cluster.apiserver.tables.age"
local common = require("cluster.apiserver.tables.columns").default
local gofmt = require "cluster.apiserver.gofmt"
local host = require "cluster.host"
local jsonpath = require "cluster.apiserver.crd.jsonpath"

local M = {}

local null = host.json.null
local CREATED = ".metadata.creationTimestamp"


local function text_of(value)
  if value == nil then
    return nil
  elseif value == null then
    return "<no value>"
  elseif type(value) == "table" then
    return host.json.encode(value)
  end
  return gofmt.plain(value)
end


-- A value as a cell of a column of some type; nil for what does not fit.
local CELLS = {
  string = text_of,
  integer = function(value)
    if type(value) ~= "number" then
      return nil
    end
    return math.tointeger(value) or math.tointeger(value < 0 and math.ceil(value) or math.floor(value))
  end,
  number = function(value)
    return type(value) == "number" and value or nil
  end,
  boolean = function(value)
    if type(value) == "boolean" then
      return value
    end
  end,
  date = function(value, now)
    return value ~= nil and age.cell(value, now) or nil
  end,
}


local function column_of(definition)
  local find, cell = jsonpath.compile(definition.jsonPath), CELLS[definition.type]
  if not find then
    return nil
  end
  local description = definition.description or ""
  return {
    name = definition.name, type = definition.type, format = definition.format or "",
    description = description ~= "" and description
      or "Custom resource definition column (in JSONPath format): " .. definition.jsonPath,
    priority = definition.priority or 0,
    value = function(object, now)
      return cell and cell(find(object), now)
    end,
  }
end


local NAME = {
  name = common[1].name, type = "string", format = "name", description = common[1].description, priority = 0,
  value = function(object) return object.metadata.name end,
}

local AGE = { name = "Age", type = "date", description = common[2].description, jsonPath = CREATED }


--- The columns of a version of a CRD, the name among them. A path that cannot be read ends the list.
--- @param version table an element of spec.versions
function M.of(version)
  local definitions = version.additionalPrinterColumns
  if not definitions or #definitions == 0 then
    definitions = { AGE }
  end
  local columns = { NAME }
  for _, definition in ipairs(definitions) do
    local column = column_of(definition)
    if not column then
      break
    end
    columns[#columns + 1] = column
  end
  return columns
end


return M
