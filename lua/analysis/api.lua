--- The script API as types: reads lua/script_api.lua, whose types are written as lua-language-server writes them.
---
--- A type is one of
---     { is = "any" }, and likewise "string" (with `value` if it is known), "integer", "number", "boolean", "table" and
---       "nil"
---     { is = "enum", values = { "gauge", … } }: one of these strings
---     { is = "list", item = type }, { is = "map", value = type }, { is = "union", type, … }
---     { is = "class", name =, fields = { name → type }, names = "a b", is_made = only the host makes it }
---     { is = "module", name =, fields = …, names = "a b", is_plain = }: of `require`, and ctx
---     { is = "function", entry = of script_api, what = "ctx.get",
---       parameters = { { name =, type =, is_optional = }, … },
---       returns = { type, … } }
local schemas = require "analysis.schemas"
local script_api = require "script_api"

local M = {}

local SCALARS = { string = 1, integer = 1, number = 1, boolean = 1, table = 1, any = 1, ["nil"] = 1, fun = 1 }

local named, classes, modules = {}, {}, {}

for _, entry in ipairs(script_api.types) do
  named[entry.name] = named[entry.name] or entry
end


-- "namespace?" → "namespace", true
local function optional(name)
  return (name:gsub("%?$", "")), name:find "%?$" ~= nil
end


-- {{{ texts of types

local Reader = {}
Reader.__index = Reader

local union

function Reader:accept(pattern)
  local text = self.text:match("^%s*(" .. pattern .. ")", self.at)
  if text then
    self.at = self.text:find(text, self.at, true) + #text
  end
  return text
end


local function function_type(self)
  local result = { is = "function", parameters = {}, returns = {} }
  assert(self:accept "%(", self.text)
  while not self:accept "%)" do
    local name = optional(self:accept "[%w_]+%??")
    assert(self:accept ":", self.text)
    result.parameters[#result.parameters + 1] = { name = name, type = union(self) }
    self:accept ","
  end
  if self:accept ":" then
    repeat
      result.returns[#result.returns + 1] = union(self)
    until not self:accept ","
  end
  return result
end


local function atom(self)
  if self:accept "%(" then
    local result = union(self)
    assert(self:accept "%)", self.text)
    return result
  end
  local literal = self:accept '"[^"]*"'
  if literal then
    return { is = "enum", values = { literal:sub(2, -2) } }
  end
  local name = assert(self:accept "[%w_.]+", self.text)
  if name == "fun" and self.text:sub(self.at, self.at) == "(" then
    return function_type(self)
  elseif name == "table" and self:accept "<" then
    union(self)
    assert(self:accept ",", self.text)
    local result = { is = "map", value = union(self) }
    assert(self:accept ">", self.text)
    return result
  elseif name == "true" or name == "false" then
    return { is = "boolean" }
  end
  return SCALARS[name] and { is = name == "fun" and "any" or name } or M.class((name:gsub("^moonloop%.", "")))
end


local function postfixed(self)
  local result = atom(self)
  while self:accept "%[%]" do
    result = { is = "list", item = result }
  end
  self:accept "%?"
  return result
end


-- Adds an alternative; strings that are listed become one enumeration.
local function add(alternatives, one)
  local last = alternatives[#alternatives]
  if one.is == "union" then
    for _, inner in ipairs(one) do
      add(alternatives, inner)
    end
  elseif last and last.is == "enum" and one.is == "enum" then
    local values = table.move(last.values, 1, #last.values, 1, {})
    alternatives[#alternatives] = { is = "enum", values = table.move(one.values, 1, #one.values, #values + 1, values) }
  else
    alternatives[#alternatives + 1] = one
  end
end


function union(self)
  local result = { is = "union" }
  repeat
    add(result, postfixed(self))
  until not self:accept "|"
  self:accept "%?"
  return #result == 1 and result[1] or result
end


local read = {}

--- The type of a text as `table<string, moonloop.Condition>`.
function M.type(text)
  if not read[text] then
    read[text] = union(setmetatable({ text = text, at = 1 }, Reader))
  end
  return read[text]
end


-- }}}

local function class_of(name, entry, list)
  local result = { is = "class", name = name, fields = {}, is_made = #list == 0 or name == "Kind" }
  classes[name] = result
  local names = {}
  for _, field in ipairs(list) do
    if field[1] == "[string]" then
      result.is_open = true
    else
      local field_name = optional(field[1])
      names[#names + 1] = field_name
      result.fields[field_name] = M.type(field[2])
    end
  end
  result.names, result.doc = table.concat(names, " "), entry.doc
  return result
end


--- A named type, "ListOptions".
function M.class(name)
  if not classes[name] then
    local entry = named[name]
    if name == "Metadata" or name == "ManifestMetadata" then
      classes[name] = schemas.metadata
    elseif not entry then
      classes[name] = { is = "any" } -- the type variable of a generic function
    elseif entry.values then
      classes[name] = { is = "enum", values = entry.values }
    elseif entry.is then
      classes[name] = M.type(entry.is)
    else
      class_of(name, entry, entry)
    end
  end
  return classes[name]
end


local function function_of(module, entry)
  local what = module.var .. "." .. entry.name
  local result = { is = "function", entry = entry, what = what, parameters = {}, returns = {} }
  for index, given in ipairs(entry.params) do
    local name, is_optional = optional(given[1])
    local type_text = entry.generic and given[2]:gsub("%f[%w]" .. entry.generic .. "%f[%W]", "any") or given[2]
    result.parameters[index] = { name = name, type = M.type(type_text), is_optional = is_optional }
  end
  for index, given in ipairs(entry.returns or {}) do
    result.returns[index] = entry.generic and { is = "any" } or M.type(given[2])
  end
  if entry.errors then
    result.returns[2] = M.class "Error"
  end
  return result
end


-- The types of its fields are read when they are asked for: a script uses few of them.
local function module_of(module)
  local names, entries = {}, {}
  for _, entry in ipairs(module) do
    names[#names + 1], entries[entry.name] = entry.name, entry
  end
  local fields = setmetatable({}, {
    __index = function(fields, name)
      local entry = entries[name]
      fields[name] = entry and (entry.call and function_of(module, entry) or M.type(entry.type))
      return rawget(fields, name)
    end,
  })
  return { is = "module", name = module.name, var = module.var, fields = fields, names = table.concat(names, " ") }
end


for _, module in ipairs(script_api.modules) do
  modules[module.name] = module_of(module)
end

--- The module that `require "NAME"` gives, or nil; "ctx" is the second parameter of reconcile.
function M.module(name)
  return modules[name]
end


-- Lua's own functions: "string.format" is in the module `string`, "pairs" in ``.
local language = {}
local function add_language(name)
  local module, member = name:match "^(.-)%.?([^.]+)$"
  language[module] = language[module] or {
    is = "module", name = module, var = module, fields = {}, names = "", is_language = true,
  }
  if not language[module].fields[member] then
    language[module].fields[member] = { is = "function", what = name, is_language = true }
    language[module].names = language[module].names .. (language[module].names == "" and "" or " ") .. member
  end
end

for _, entry in ipairs(script_api.language) do
  add_language(entry[1])
end
for _, name in ipairs(script_api.more) do
  add_language(name)
end
for module, values in pairs { math = { "huge", "pi", "maxinteger", "mininteger" }, utf8 = { "charpattern" } } do
  for _, name in ipairs(values) do
    language[module].fields[name] = { is = "any" }
    language[module].names = language[module].names .. " " .. name
  end
end


--- A library of Lua, as "string"; or a function of Lua, as "pairs"; or nil.
function M.global(name)
  return name ~= "" and language[name] or language[""].fields[name]
end


return M
