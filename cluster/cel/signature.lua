--- Declarations of functions in short: "string.(int, int) -> string" for a method, "(list(A)) -> int" for a function.
local types = require "cluster.cel.types"

local M = {}

local NAMED = {
  bool = types.bool, bytes = types.bytes, double = types.double, int = types.int, uint = types.uint, dyn = types.dyn,
  string = types.string, null = types.null, timestamp = types.timestamp, duration = types.duration, type = types.type,
}

local MAKE = { list = types.list, map = types.map, optional = types.optional, type = types.type_of }


-- Reads a type from the text. Returns it and the place behind it.
local function read_type(text, at, names)
  local name, stop = text:match("^%s*([%w_]+)()", at)
  if text:sub(stop, stop) ~= "(" then
    local type = names and names[name] or NAMED[name] or name:find "^%u$" and types.param(name)
    return type or error("no such type: " .. name), stop
  end
  local params = {}
  repeat
    params[#params + 1], stop = read_type(text, stop + 1, names)
  until text:sub(stop, stop) ~= ","
  return MAKE[name](table.unpack(params)), stop + 1
end


local function collect_params(type, found)
  if type.kind == "param" and not found[type.name] then
    found[type.name] = true
    found[#found + 1] = type.name
  end
  for _, param in ipairs(type.params) do
    collect_params(param, found)
  end
end


--- Reads a declaration.
--- @param text string
--- @param names table|nil name → type, beside those of the language
--- @return table declaration { member, args, result, params }: params are the names of its type parameters
function M.read(text, names)
  local declaration, at = { args = {}, member = false }, 1
  if not text:find "^%(" then
    declaration.member = true
    declaration.args[1], at = read_type(text, 1, names)
    at = at + 1 -- the dot
  end
  while not text:find("^%(?%)", at) do
    declaration.args[#declaration.args + 1], at = read_type(text, at + 1, names)
  end
  declaration.result = read_type(text, text:match("->()", at), names)
  local params = {}
  for _, type in ipairs(declaration.args) do
    collect_params(type, params)
  end
  collect_params(declaration.result, params)
  declaration.params = params
  return declaration
end


return M
