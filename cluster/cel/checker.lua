--- Finds the type of each node of a tree, and which functions and variables it means.
---
--- It sets on nodes: `type`; `ref` of identifiers, the declaration of a variable or { value } of a constant;
--- `overloads` of calls, those that may be meant; `decl` of loops, the declarations of their variables. Nodes are
--- changed in place: a selection that is the name of a variable becomes an identifier. Rules: cel-go
--- checker/checker.go.
local calls = require "cluster.cel.checker_calls"
local loops = require "cluster.cel.checker_loops"
local parser = require "cluster.cel.parser"
local types = require "cluster.cel.types"
local unify = require "cluster.cel.unify"

local M = {}

local PARTS_MAX = 1000 -- of a type: map(string, list(int)) has 4

local Checker = {}
Checker.__index = Checker


-- Without a list of issues what is wrong shows when the node runs.
function Checker:mistake(node, text, ...)
  if self.issues then
    self.issues:add(node.at, text:format(...))
  end
end


function Checker:undeclared(node, name)
  local text = "undeclared reference to '%s' (in container '%s')"
  self:mistake(node, text, name, self.env.container)
  node.failed = text:format(name, self.env.container)
  node.type = self.issues and types.error or types.dyn
end


function Checker:new_param()
  local number = self.count
  self.count = number + 1
  return types.param("_var" .. number)
end


-- A type that doubles with each step of a chain would take more time than there is.
function Checker:set(node, type)
  if type.parts > PARTS_MAX then
    self:mistake(node, "the type of this expression has more than %d parts", PARTS_MAX)
    type = self.issues and types.error or types.dyn
  end
  node.type = type
  self.typed[#self.typed + 1] = node
end


-- Names.

-- The names that a name may mean within the container "a.b": "a.b.x", "a.x", "x".
function Checker:candidates(name)
  if name:find "^%." then
    return { name:sub(2) }
  end
  local list, container = {}, self.env.container
  while container ~= "" do
    list[#list + 1] = container .. "." .. name
    container = container:match "^(.*)%." or ""
  end
  list[#list + 1] = name
  return list
end


-- A type that the environment makes up for its name, or nil.
function Checker:made_type(name)
  local type = self.env.resolve and self.env.resolve(name)
  return type and { name = name, type = types.type_of(type), value = type }
end


-- A variable, or a type by its name; nil when there is none.
function Checker:find_name(name)
  for _, candidate in ipairs(self:candidates(name)) do
    local scope = self.scope
    while scope do
      if scope.names[candidate] then
        return scope.names[candidate]
      end
      scope = scope.outer
    end
    local declared = self.env.names[candidate] or self:made_type(candidate)
    if declared then
      return declared
    end
  end
  return nil
end


function Checker:find_function(name)
  for _, candidate in ipairs(self:candidates(name)) do
    if self.env.functions[candidate] then
      return self.env.functions[candidate], candidate
    end
  end
  return nil
end


function Checker:enter(...)
  self.scope = { names = {}, outer = self.scope }
  for _, declaration in ipairs { ... } do
    self.scope.names[declaration.name] = declaration
  end
end


function Checker:leave()
  self.scope = self.scope.outer
end


local CHECK = {}


function Checker:check(node)
  CHECK[node.kind](self, node)
  return node.type
end


function CHECK.const(self, node)
  self:set(node, node.type)
end


local function become_name(self, node, declaration)
  node.kind, node.ref, node.name = "ident", declaration, declaration.name
  self:set(node, declaration.type)
end


function CHECK.ident(self, node)
  local declaration = self:find_name(node.name)
  if not declaration then
    return self:undeclared(node, node.name)
  end
  become_name(self, node, declaration)
end


-- Selections.

local function unwrap(type)
  if types.is_optional(type) then
    return type.params[1], true
  end
  return type, false
end


-- The type of operand.field.
function Checker:field_type(node, operand, field, optional)
  local type, is_optional = unwrap(self.types:apply(self:check(operand)))
  local result = types.dyn
  if type.kind == "map" then
    result = type.params[2]
  elseif type.kind == "object" then
    local found = types.field(type, field)
    if not found and type.is_abstract then
      self:mistake(node, "unexpected failed resolution of '%s'", type.name)
    elseif not found then
      self:mistake(node, "undefined field '%s'", field)
    end
    result = found and found.type or types.error
  elseif type.kind == "param" then
    self.types:assignable(types.dyn, type)
  elseif type.kind ~= "dyn" and type.kind ~= "error" then
    self:mistake(node, "type '%s' does not support field selection", types.format(type))
  end
  if is_optional or optional then
    return types.optional(result)
  end
  return result
end


function CHECK.select(self, node)
  local name = not node.test and parser.qualified(node)
  local declaration = name and self:find_name(name)
  if declaration then
    return become_name(self, node, declaration)
  end
  local type = self:field_type(node, node.operand, node.field, false)
  self:set(node, node.test and types.bool or self.types:apply(type))
end


-- Lists, maps, messages.

-- The type that elements of both types have: dyn, when they have nothing in common.
function Checker:join(previous, current)
  if not previous then
    return current
  elseif self.types:assignable(previous, current) then
    return unify.most_general(previous, current)
  end
  return types.dyn
end


-- The type of what an optional element gives.
function Checker:entry_type(node, optional)
  local type = self:check(node)
  if not optional then
    return type
  end
  local inner, is_optional = unwrap(type)
  if not is_optional and type.kind ~= "dyn" then
    self:mistake(node, "expected type '%s' but found '%s'", types.format(types.optional(type)), types.format(type))
  end
  return inner
end


function CHECK.list(self, node)
  local of
  for i, element in ipairs(node.elements) do
    of = self:join(of, self:entry_type(element, node.optional[i]))
  end
  self:set(node, types.list(of or self:new_param()))
end


function CHECK.map(self, node)
  local key, value
  for _, entry in ipairs(node.entries) do
    key = self:join(key, self:check(entry.key))
    value = self:join(value, self:entry_type(entry.value, entry.optional))
  end
  self:set(node, types.map(key or self:new_param(), value or self:new_param()))
end


function CHECK.struct(self, node)
  local declaration = self:find_name(node.name)
  local type = types.error
  if not declaration then
    self:undeclared(node, node.name)
  elseif declaration.type.kind ~= "type" then
    self:mistake(node, "'%s' is not a type", types.format(declaration.type))
  elseif declaration.type.params[1].kind ~= "object" then
    self:mistake(node, "'%s' is not a message type", types.format(declaration.type.params[1]))
  else
    type = declaration.type.params[1]
  end
  self:set(node, type)
  for _, entry in ipairs(node.entries) do
    local entry_type = self:entry_type(entry.value, entry.optional)
    local found = type.kind == "object" and types.field(type, entry.field)
    if type.kind == "object" and not found then
      self:mistake(entry, "undefined field '%s'", entry.field)
    elseif found and not self.types:assignable(found.type, entry_type) then
      self:mistake(entry, "expected type of field '%s' is '%s' but provided type is '%s'", entry.field,
        types.format(found.type), types.format(entry_type))
    end
  end
end


calls.add(Checker, CHECK)
loops.add(Checker, CHECK)


--- Checks a tree.
--- @param node table
--- @param env table { names, functions, container }
--- @param issues table|nil gets the mistakes; nil: types are not checked, and the values choose overloads
function M.check(node, env, issues)
  local checker = setmetatable({ env = env, issues = issues, types = unify.new(), count = 0, typed = {} }, Checker)
  checker:check(node)
  for _, typed in ipairs(checker.typed) do
    typed.type = checker.types:apply(typed.type, true)
  end
end


return M
