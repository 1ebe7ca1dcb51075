--- All functions and types of an environment. They are made once.
local functions_module = require "cluster.cel.functions"
local types = require "cluster.cel.types"

local M = {}

local LIBRARIES = {
  "operators", "conversions", "texts", "times", "optionals", "strings", "sets", "patterns", "addresses", "urls",
  "quantities", "versions", "formats", "authorization",
}

local NAMED = {
  bool = types.bool, bytes = types.bytes, double = types.double, int = types.int, uint = types.uint,
  string = types.string, null_type = types.null, type = types.type, list = types.list(types.dyn),
  map = types.map(types.dyn, types.dyn), optional_type = types.optional(types.dyn),
  [types.timestamp.name] = types.timestamp, [types.duration.name] = types.duration,
}

local functions = functions_module.new()
for _, name in ipairs(LIBRARIES) do
  local library = require("cluster.cel.lib." .. name)
  functions:name_types(library.short or {})
  library.add(functions)
  for _, type in pairs(library.short or {}) do
    NAMED[type.name] = type
  end
end


--- @return table name → overloads; not to be changed
function M.functions()
  return functions.by_name
end


--- The types that expressions may name, as constants.
--- @param more table|nil name → type
--- @return table name → declaration
function M.type_names(more)
  local names = {}
  for _, named in ipairs { NAMED, more or {} } do
    for name, type in pairs(named) do
      names[name] = { name = name, type = types.type_of(type), value = type }
    end
  end
  return names
end


return M
