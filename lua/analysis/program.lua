--- The files of a source as one program: which function a call calls, also one of another file, and how each function
--- is used. A function that is used in a way that cannot be followed `escapes`: its parameters may be anything.
local parser = require "analysis.parser"

local M = {}

local Program = {}
Program.__index = Program

--- The value of a variable that never changes, for an expression that names one. A parameter, a loop's variable and one
--- that may be anything stay themselves.
local function constant(node)
  while node do
    local variable = node.variable
    if variable and not variable.others and variable.value and variable.value_index == 1 then
      node = node.variable.value
    elseif node.tag == "single" and node.of.tag ~= "varargs" then
      node = node.of
    else
      return node
    end
  end
end

M.constant = constant


-- The name in `require "NAME"`, or nil.
local function required_name(node)
  node = constant(node)
  local first = node and node.tag == "call" and node.callee.tag == "global" and node.callee.name == "require"
    and constant(node.arguments[1])
  return first and first.tag == "string" and first.value or nil
end

M.required_name = required_name


--- The file of the program that the expression is, as what its `require` gives; or nil.
function Program:chunk_of(node)
  local name = required_name(node)
  return name and self.chunks[name]
end


-- The table that a file gives to `require`, and its variable, if it has one; or nil.
local function exported(chunk)
  local returns = chunk.main.returns
  local node = #returns == 1 and #returns[1] == 1 and returns[1][1]
  local value = node and constant(node)
  if not value or value.tag ~= "table" then
    return nil
  end
  return value, node.tag == "variable" and node.variable or nil
end


-- Finds what the table that a file returns has: name → { values }. `is_open`: it may have more.
local function read_exports(chunk)
  local node, variable = exported(chunk)
  chunk.exports, chunk.is_open = {}, node == nil
  if not node then
    return
  end
  chunk.is_open = #node.keys > 0 or #node.items > 0
  for name, value in pairs(node.fields) do
    chunk.exports[name] = { value }
  end
  local followed = 1 -- the mention in `return M`
  for _, field in ipairs(chunk.fields) do
    if variable and field.of.tag == "variable" and field.of.variable == variable then
      followed = followed + 1
    end
  end
  for _, note in ipairs(chunk.assignments) do
    local target = note.target
    if variable and target.tag == "field" and target.of.tag == "variable" and target.of.variable == variable then
      local values = chunk.exports[target.name] or {}
      values[#values + 1] = note.value_index == 1 and note.value or { tag = "varargs" }
      chunk.exports[target.name] = values
    end
  end
  chunk.is_open = chunk.is_open or variable ~= nil and variable.mentions ~= followed
end


-- Are all mentions of the variable of `require "x"` fields of it? Else the module's functions may be used in any way.
local function follow_requires(self, chunk)
  local variables = {}
  for _, field in ipairs(chunk.fields) do
    if field.of.tag == "variable" then
      variables[field.of.variable] = (variables[field.of.variable] or 0) + 1
    end
  end
  local bound = {}
  for variable, count in pairs(variables) do
    local other = self:chunk_of { tag = "variable", variable = variable }
    if other then
      bound[variable.value] = true
      other.is_used_freely = other.is_used_freely or count ~= variable.mentions
    end
  end
  for _, call in ipairs(chunk.calls) do
    local other = self:chunk_of(call)
    if other then
      other.is_required_by = other.is_required_by or {}
      other.is_required_by[chunk] = true
      other.is_used_freely = other.is_used_freely or not bound[call]
    end
  end
end


--- The one value that a file of the program exports under the name of a field; or nil.
function Program:exported_value(field)
  local chunk = field.chunk_of
  if chunk == nil then
    chunk = self:chunk_of(field.of) or self:own_chunk(field.of) or false
    field.chunk_of = chunk
  end
  local values = chunk and not chunk.is_open and chunk.exports[field.name]
  return values and #values == 1 and values[1] or nil
end


-- The file whose exported table the variable is.
function Program:own_chunk(node)
  return node.tag == "variable" and self.tables[node.variable] or nil
end


--- The expression that a node always is, through variables and fields of files.
function Program:resolve(node)
  for _ = 1, 16 do
    node = constant(node)
    local value = node and node.tag == "field" and self:exported_value(node)
    if not value then
      return node
    end
    node = value
  end
end


--- The function that a node names, or nil.
function Program:function_of(node)
  local value = self:resolve(node)
  return value and value.tag == "function" and value or nil
end


--- Adds a use of the function that `node` names: { arguments = list of expressions, chunk = the file of the call }, or
--- { types = function(index) → type of a parameter }.
function Program:add_use(node, use)
  local made = self:function_of(node)
  if made then
    made.uses[#made.uses + 1] = use
    if node ~= made then
      made.followed = (made.followed or 0) + 1
    end
  end
end


-- How often each function is named: by its variable, or by a field of its file.
local function count_mentions(self)
  for _, chunk in ipairs(self.list) do
    for _, made in ipairs(chunk.functions) do
      made.mentions = 0
    end
  end
  for _, chunk in ipairs(self.list) do
    for _, variable in ipairs(chunk.variables) do
      local value = variable.value
      if value and value.tag == "function" then
        value.mentions = value.mentions + variable.mentions
        value.escapes = value.escapes or variable.others ~= nil
      end
    end
    for _, field in ipairs(chunk.fields) do
      local made = not field.is_assigned and self:exported_value(field)
      made = made and constant(made)
      if made and made.tag == "function" then
        made.mentions = made.mentions + 1
      end
    end
    for _, values in pairs(chunk.exports) do
      for _, value in ipairs(values) do
        local made = constant(value)
        if made and made.tag == "function" then
          made.is_exported = true
          made.escapes = made.escapes or #values > 1 or chunk.is_open or chunk.is_used_freely
          made.mentions = made.mentions + (value.tag == "variable" and -1 or 0) -- the mention where it is exported
        end
      end
    end
  end
end


--- Marks the functions that escape; all uses have been added.
function Program:finish()
  count_mentions(self)
  for _, chunk in ipairs(self.list) do
    for _, made in ipairs(chunk.functions) do
      made.escapes = made.escapes or made.mentions ~= (made.followed or 0)
    end
  end
end


--- @param files table list of { name = "x.lua", text = }
--- @return table program: `list` of the files, each what parser.parse returned, with `file` and `exports`
function M.new(files)
  local self = setmetatable({ list = {}, chunks = {}, tables = {} }, Program)
  for _, file in ipairs(files) do
    local chunk = parser.parse(file.text)
    chunk.file = file.name
    self.list[#self.list + 1] = chunk
    self.chunks[file.name:gsub("%.lua$", "")] = chunk
    for _, made in ipairs(chunk.functions) do
      made.chunk = chunk
    end
  end
  for _, chunk in ipairs(self.list) do
    read_exports(chunk)
    local _, variable = exported(chunk)
    if variable then
      self.tables[variable] = chunk
    end
  end
  for _, chunk in ipairs(self.list) do
    follow_requires(self, chunk)
  end
  return self
end


return M
