--- The types of a program's expressions, as far as its text leaves no doubt: modules and their functions, kinds,
--- objects of them and parts of those, and the tables that the script API takes and returns. Anything else is nil.
---
--- Besides the types of api.lua there are
---     { is = "kind", kind = "apps/v1/Deployment" }: of moonloop.kind
---     { is = "object", schema =, path = "spec.users[]", of = "Deployment of apps/v1", kind = "apps/v1/Deployment",
---       is_root = it is the whole object }: an object, or a part of one, with its schema
---     { is = "keys", fields = { name → type }, names = }: a table with these keys
local api = require "analysis.api"
local program_of = require "analysis.program"
local schemas = require "analysis.schemas"

local M = {}

local constant = program_of.constant
local ANY, STRING = { is = "any" }, { is = "string" }

local Types = {}
Types.__index = Types

-- {{{ constants

--- The text that an expression always is, or nil.
function Types:text_of(node)
  node = self.program:resolve(node)
  if not node then
    return nil
  elseif node.tag == "string" then
    return node.value
  elseif node.tag == "binary" and node.operator == ".." then
    local left, right = self:text_of(node.left), self:text_of(node.right)
    return left and right and left .. right
  elseif node.tag == "field" then
    local of = self:of(node)
    return of and of.is == "string" and of.value or nil
  end
end


-- }}}
-- {{{ calls

--- The function that `moonloop.NAME(…)` or `ctx.NAME(…)` calls, as { is = "function" } of api.lua; or nil.
function Types:called(call)
  local type = self:of(call.callee)
  return type and type.is == "function" and type or nil
end


local function kind_type(self, call)
  local version, kind = self:text_of(call.arguments[1]), self:text_of(call.arguments[2])
  return version and kind and { is = "kind", kind = version .. "/" .. kind, line = call.line } or api.class "Kind"
end


function Types:object_of(kind)
  return schemas.root(self.schema_of, kind)
end


--- The kind, "apps/v1/Deployment", of an expression that is one of moonloop.kind; or nil.
function Types:kind_of(node)
  local type = self:of(node)
  return type and type.is == "kind" and type.kind or nil
end


--- The kind of an object: of one that was read, or of a table as a manifest; or nil.
function Types:kind_of_object(node)
  local value = self.program:resolve(node)
  if value and value.tag == "table" then
    local version, kind = self:text_of(value.fields.apiVersion), self:text_of(value.fields.kind)
    return version and kind and version .. "/" .. kind or nil
  elseif value and value.tag == "call" and self:is_passed_on(value) then
    return self:kind_of_object(value.arguments[1])
  elseif value and value.tag == "call" then
    local made = self.program:function_of(value.callee)
    local kind
    for _, list in ipairs(made and made.returns or {}) do
      if value.in_kind_of_object or #list ~= 1 then
        return nil
      end
      value.in_kind_of_object = true
      local one = self:kind_of_object(list[1])
      value.in_kind_of_object = nil
      if not one or kind and kind ~= one then
        return nil
      end
      kind = one
    end
    if kind then
      return kind
    end
  end
  local type = self:of(node)
  return type and type.is == "object" and type.is_root and type.kind or nil
end


-- Functions whose result is their first argument, or an object of the same type.
local PASSED_ON = {
  ["assert"] = true, ["cjson.array"] = true, ["moonloop.array"] = true, ["moonloop.copy"] = true,
  ["moonloop.exact"] = true, ["moonloop.merge"] = true, ["moonloop.recreate"] = true,
}


--- Does the call return its first argument, or a copy? assert(x), moonloop.recreate(x), moonloop.copy(x)
function Types:is_passed_on(call)
  local called = self:called(call)
  return called ~= nil and PASSED_ON[called.what] == true
end


local function object_written(self, call)
  local kind = self:kind_of_object(call.arguments[1])
  return kind and self:object_of(kind) or api.class "Object"
end


local function once_keys(self, call)
  local given = self:closed_table(call.arguments[2])
  if not given or #given.items > 0 then
    return { is = "map", value = STRING }
  end
  local fields, names = {}, {}
  for name in pairs(given.fields) do
    fields[name], names[#names + 1] = STRING, name
  end
  table.sort(names)
  return { is = "keys", fields = fields, names = table.concat(names, " ") }
end


-- The first result of a function of the script API whose arguments say what it is.
local RESULTS = {
  ["moonloop.kind"] = kind_type,
  ["ctx.get"] = function(self, call)
    local kind = self:kind_of(call.arguments[1])
    return kind and self:object_of(kind) or api.class "Object"
  end,
  ["ctx.list"] = function(self, call)
    local kind = self:kind_of(call.arguments[1])
    return { is = "list", item = kind and self:object_of(kind) or api.class "Object" }
  end,
  ["ctx.ensure"] = object_written,
  ["ctx.apply"] = object_written,
  ["ctx.create"] = object_written,
  ["ctx.patch"] = object_written,
  ["ctx.once"] = once_keys,
}

local function require_type(self, call)
  local name = program_of.required_name(call)
  return name and not self.program.chunks[name] and api.module(name) or nil
end


-- The type of a value that a function of the program returns: the same wherever it returns one.
local function returned_type(self, made, value_index)
  local found
  for _, list in ipairs(made.returns) do
    local node = list[value_index]
    local last = list[#list]
    if not node and last and (last.tag == "call" or last.tag == "method" or last.tag == "varargs") then
      return nil
    end
    if node and not (node.tag == "constant" and not node.value) then
      local type = self:of(node)
      if not type or found and not M.is_same(found, type) then
        return nil
      end
      found = type
    end
  end
  return found
end


local function call_type(self, call, value_index)
  local called = self:called(call)
  local first = call.arguments[1]
  if called and called.is_language then
    if called.what == "require" then
      return value_index == 1 and require_type(self, call) or nil
    elseif called.what == "assert" then
      return first and self:of(first, value_index)
    end
    return (called.what == "tostring" or called.what == "string.format") and STRING or nil
  elseif called and called.entry then
    if value_index == 1 and RESULTS[called.what] then
      return RESULTS[called.what](self, call)
    elseif value_index == 1 and self:is_passed_on(call) then
      return self:of(first)
    end
    return called.returns[value_index]
  end
  local made = self.program:function_of(call.callee)
  return made and returned_type(self, made, value_index)
end


-- }}}
-- {{{ variables

--- Are two types the same, for a value that has both?
function M.is_same(a, b)
  if a == b then
    return true
  elseif a.is ~= b.is then
    return false
  elseif a.is == "object" then
    return a.schema == b.schema
  elseif a.is == "list" then
    return M.is_same(a.item, b.item)
  elseif a.is == "map" then
    return M.is_same(a.value, b.value)
  elseif a.is == "kind" then
    return a.kind == b.kind
  end
  return a.is == "string" and a.value == b.value or a.is == "number" or a.is == "integer" or a.is == "boolean"
end


-- The type that a parameter has wherever its function is called.
local function given_type(self, variable)
  local made, found = variable.parameter_of, nil
  if made.escapes then
    return nil
  end
  for _, use in ipairs(made.uses) do
    local node = use.arguments and use.arguments[variable.index]
    local type
    if use.types then
      type = use.types(variable.index)
    elseif node then
      type = self:of(node)
    end
    if not type or found and not M.is_same(found, type) then
      return nil
    end
    found = type
  end
  return found
end


local function item_type(of)
  if not of then
    return nil
  elseif of.is == "list" then
    return of.item
  elseif of.is == "map" then
    return of.value
  elseif of.is == "object" then
    return schemas.item(of)
  end
end


M.item_type = item_type


local function loop_type(self, loop)
  local call = constant(loop.iterator)
  local called = call and call.tag == "call" and call.callee.tag == "global" and call.callee.name
  if loop.index == 2 and (called == "ipairs" or called == "pairs") then
    return item_type(self:of(call.arguments[1]))
  elseif loop.index == 1 and called == "ipairs" then
    return { is = "integer" }
  end
end


local function is_nil(node)
  return node.tag == "constant" and node.value == nil
end


-- The type that all values of a variable have.
local function assigned_type(self, variable)
  local found = not is_nil(variable.value) and self:of(variable.value, variable.value_index) or nil
  if not found and not is_nil(variable.value) then
    return nil
  end
  for _, note in ipairs(variable.others or {}) do
    local type = not is_nil(note.value) and self:of(note.value, note.value_index) or nil
    if not type and not is_nil(note.value) or type and found and not M.is_same(found, type) then
      return nil
    end
    found = found or type
  end
  return found
end


local function variable_type(self, variable)
  local made = variable.parameter_of
  if made then
    if variable.others then
      return nil
    end
    local is_ctx = variable.name == "ctx" and (made.escapes or #made.uses == 0)
    return given_type(self, variable) or is_ctx and api.module "ctx" or nil
  elseif variable.loop then
    return not variable.others and loop_type(self, variable.loop) or nil
  elseif variable.is_number then
    return { is = "number" }
  end
  return assigned_type(self, variable)
end


-- }}}
-- {{{ expressions

--- The type of a field; nil: nothing is known. Second: the names that there are, if this is none of them.
function Types:field(of, name)
  if of.is == "object" then
    return schemas.field(of, name)
  elseif of.is == "module" or of.is == "class" or of.is == "keys" then
    local type = of.fields[name]
    if type or of.is_open or #of.names == 0 then
      return type
    end
    return nil, of.names
  elseif of.is == "kind" then
    local version, kind = of.kind:match "^(.*)/([^/]+)$"
    local text = name == "apiVersion" and version or name == "kind" and kind
    if text then
      return { is = "string", value = text }
    end
    local type, known = self:field(api.class "Kind", name)
    return type, known
  elseif of.is == "map" then
    return of.value
  end
end


local function binary_type(self, node)
  local operator = node.operator
  if operator == ".." then
    return STRING
  elseif operator == "and" then
    return self:of(node.right)
  elseif operator == "or" then
    local left, right = self:of(node.left), constant(node.right)
    local is_nothing = right.tag == "table" and next(right.fields) == nil and #right.items == 0 and #right.keys == 0
      or right.tag == "constant" and not right.value
    if is_nothing then
      return left
    end
    local other = left and self:of(node.right)
    return other and M.is_same(left, other) and left or nil
  end
end


local FINDERS = {
  variable = function(self, node)
    return variable_type(self, node.variable)
  end,
  global = function(_, node)
    return api.global(node.name)
  end,
  string = function(_, node)
    return { is = "string", value = node.value }
  end,
  number = function(_, node)
    return { is = math.type(node.value) == "integer" and "integer" or "number" }
  end,
  constant = function(_, node)
    return node.value ~= nil and { is = "boolean" } or nil
  end,
  binary = binary_type,
  field = function(self, node)
    local value = self.program:exported_value(node)
    if value then
      return self:of(value)
    end
    local of = self:of(node.of)
    return of and (self:field(of, node.name)) or nil
  end,
  item = function(self, node)
    return item_type(self:of(node.of))
  end,
  single = function(self, node)
    return self:of(node.of)
  end,
}

--- The type of an expression, or nil. One that depends on itself has none.
--- @param value_index integer? which value of a call; the first when left out
function Types:of(node, value_index)
  if not node then
    return nil
  elseif node.tag == "call" then
    value_index = value_index or 1
    local results = self.results[node] or {}
    self.results[node] = results
    if results[value_index] == nil then
      results[value_index] = false
      results[value_index] = call_type(self, node, value_index) or false
    end
    return results[value_index] or nil
  elseif value_index and value_index > 1 then
    return nil
  end
  local key = node.tag == "variable" and node.variable or node
  if self.found[key] == nil then
    self.found[key] = false
    local finder = FINDERS[node.tag]
    self.found[key] = finder and finder(self, node) or false
  end
  return self.found[key] or nil
end


--- The table constructor that an expression is, when all its keys are literal and nothing is added later; or nil.
function Types:closed_table(node)
  local step = node
  while step and step.variable do
    local variable = step.variable
    if variable.mentions ~= 1 or variable.others then
      return nil
    end
    step = variable.value
  end
  local value = node and self.program:resolve(node)
  return value and value.tag == "table" and #value.keys == 0 and value or nil
end


-- }}}
-- {{{ how functions are used

-- The types of the arguments that a function of a declaration is called with.
local function declaration_parameters(name, object)
  local ctx = api.module "ctx"
  local lists = {
    reconcile = { object, ctx }, finalize = { object, ctx }, default = { object }, validate = { object, object, ctx },
  }
  return lists[name]
end


local function add_types(self, node, list)
  self.program:add_use(node, {
    types = function(index)
      return type(list) == "function" and list(index) or type(list) == "table" and list[index] or nil
    end,
  })
end


-- `given`: the expression that is given to moonloop.controller.
local function add_declaration(self, chunk, declaration, given)
  chunk.declarations = chunk.declarations or {}
  declaration.given = given
  table.insert(chunk.declarations, declaration)
  for _, name in ipairs { "reconcile", "finalize", "default", "validate" } do
    add_types(self, declaration.fields[name], function(index)
      local kind = self:kind_of(declaration.fields.reconciles)
      return declaration_parameters(name, kind and self:object_of(kind) or ANY)[index]
    end)
  end
end


local function add_call(self, chunk, call)
  self.program:add_use(call.callee, { arguments = call.arguments, chunk = chunk })
  local first, second = call.arguments[1], call.arguments[2]
  local callee = call.callee
  local what = callee.tag == "field" and program_of.required_name(callee.of) == "moonloop" and callee.name
  if what == "controller" and constant(first) and constant(first).tag == "table" then
    add_declaration(self, chunk, constant(first), first)
  elseif what == "index" or what == "watch" then
    add_types(self, second, function(index)
      local kind = self:kind_of(first)
      return index == 1 and (kind and self:object_of(kind) or ANY) or index == 2 and api.module "ctx" or nil
    end)
  end
end


-- }}}

--- Gives the schemas of kinds. The types are found anew.
--- @param schema_of function(group, version, kind) → schema, or nil
function Types:know(schema_of)
  self.schema_of, self.found, self.results = schema_of, {}, {}
end


local function no_schema()
  return nil
end


--- @param program table of program.lua, which belongs to these types from now on
--- @return table types, to which no schema is known
function M.new(program)
  local self = setmetatable({ program = program }, Types)
  self:know(no_schema)
  for _, chunk in ipairs(program.list) do
    for _, call in ipairs(chunk.calls) do
      add_call(self, chunk, call)
    end
  end
  program:finish()
  return self
end


return M
