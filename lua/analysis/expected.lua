--- Tables and other literals where the script API, or the schema of a kind, says what has to stand: options, results,
--- manifests, patches. An expected type goes from a place back to where its value is written: through variables, the
--- returns of functions and the arguments of their calls.
---
--- Where a value stands has words for messages: `where`, "ctx.list(…)" or "Deployment of apps/v1", and the path in it,
--- "metadata.labels", or "".
local literals = require "analysis.literals"
local names = require "moonloop.names"
local schemas = require "analysis.schemas"
local types_of = require "analysis.types"

local M = {}

local DEPTH_MAX = 64

local Expected = {}
Expected.__index = Expected

local expect

-- {{{ problems

function Expected:tell(line, text)
  if not self.is_first_pass then
    self.report(self.chunk, line, text)
  end
end


local function path_to(path, name)
  return path == "" and name or path .. "." .. name
end


-- Of a part of an object these are the object's; else those of the place.
local function place_of(type, where, path)
  if type.is == "object" then
    return type.of, type.path
  end
  return where, path
end


-- "labels of ctx.list(…)"
local function place_words(where, path)
  return path == "" and where or ("%s of %s"):format(path, where)
end


local function tell_unknown(self, line, where, path, name, known)
  local hint = names.hint(name, known, "the fields are")
  self:tell(line, ("%s has no field '%s'; %s"):format(where, names.text(path_to(path, name)), hint))
end


local function tell_wrong(self, line, where, path, type, node)
  local kind, words = literals.kind(node)
  local values = kind == "string" and literals.values(type)
  self:tell(line, ("%s: expected %s, got %s%s"):format(place_words(where, path), literals.words(type), words,
    values and literals.suggestion(node.value, values) or ""))
end


-- }}}
-- {{{ tables

-- The one alternative of a type that a table can be; nil: there is none, or it may be anything.
local function table_type(type)
  if type.is == "union" then
    local found
    for _, one in ipairs(type) do
      local inner = table_type(one)
      if inner and found then
        return nil
      end
      found = inner or found
    end
    return found
  end
  local is = type.is
  local is_table = is == "list" or is == "map" or is == "class" and not type.is_made
    or is == "object" and not literals.is_scalar(type)
  return is_table and type or nil
end


local function is_list(type)
  return type.is == "list" or type.is == "object" and schemas.plain_type(type.schema) == "array"
end


local function has_only_fields(type)
  return type.is == "class" and not type.is_open or type.is == "object" and schemas.plain_type(type.schema) == "object"
end


-- A field that a table gets in a line. `value` nil: it is not known.
local function expect_field(self, type, name, value, line, where, path)
  where, path = place_of(type, where, path)
  if is_list(type) then
    self:tell(line, ("%s: expected a list, found the key '%s'"):format(place_words(where, path), names.text(name)))
    return
  end
  local child, known = self.types:field(type, name)
  if known then
    tell_unknown(self, line, where, path, name, known)
  elseif child and value then
    expect(self, value, child, where, path_to(path, name), line)
  end
end


local function expect_items(self, node, type, where, path)
  where, path = place_of(type, where, path)
  if has_only_fields(type) then
    self:tell(node.line, ("%s: expected a table with fields, got a list"):format(place_words(where, path)))
    return
  end
  local item = types_of.item_type(type)
  for index, value in ipairs(item and node.items or {}) do
    expect(self, value, item, where, ("%s[%d]"):format(path, index), node.line)
  end
end


local function expect_table(self, node, type, where, path)
  for _, name in ipairs(node.order) do
    expect_field(self, type, name, node.fields[name], node.lines[name], where, path)
  end
  local value_type = not is_list(type) and types_of.item_type(type)
  for _, pair in ipairs(value_type and node.keys or {}) do
    expect(self, pair.value, value_type, where, path .. "[]", node.line)
  end
  if #node.items > 0 then
    expect_items(self, node, type, where, path)
  end
end


-- The identity of a type: that of a part of an object is made anew each time.
local function identity(type)
  return type.is == "object" and type.schema or type
end


-- The fields that a table gets later, which a variable is: `result.requeue_after = 5`. A variable that is expected to
-- be two things may get fields of the one after it was the other.
local function expect_assignments(self, variable, type, where, path)
  local one = table_type(type)
  local flows = self.flows[variable] or {}
  if self.is_first_pass then
    self.flows[variable] = flows
    flows[identity(one or type)] = one or type
  end
  local is_only_one = next(flows, (next(flows))) == nil
  for _, note in ipairs(one and (is_only_one or self.is_first_pass) and self.assigned_to[variable] or {}) do
    local target, value = note.target, note.value_index == 1 and note.value or nil
    expect_field(self, one, target.name, value, target.line, where, path)
  end
end


-- }}}
-- {{{ the way back

local function expect_literal(self, node, type, where, path, line)
  local kind = literals.kind(node)
  local one = kind == "table" and table_type(type)
  if one then
    expect_table(self, node, one, where, path)
  elseif kind == "table" and literals.is_scalar(type)
    or kind and kind ~= "table" and kind ~= "function" and not literals.fits(type, kind, node.value)
  then
    tell_wrong(self, node.line or line, where, path, type, node)
  end
end


-- False: the expression was expected to be that before.
local function visit(self, node, type)
  local seen = self.seen[node] or {}
  self.seen[node] = seen
  local is_new = not seen[identity(type)]
  seen[identity(type)] = true
  return is_new
end


-- As expect, for an expression of another file.
local function expect_in(self, chunk, ...)
  local outer = self.chunk
  self.chunk = chunk
  expect(self, ...)
  self.chunk = outer
end


local WAYS = {}

function WAYS.variable(self, node, type, where, path, line)
  local variable = node.variable
  local made = variable.parameter_of
  if variable.others or variable.loop or variable.is_number then
    return
  end
  expect_assignments(self, variable, type, where, path)
  if made then
    for _, use in ipairs(not made.escapes and made.uses or {}) do
      if use.arguments then
        expect_in(self, use.chunk, use.arguments[variable.index], type, where, path, line)
      end
    end
  elseif variable.value_index == 1 then
    expect(self, variable.value, type, where, path, line)
  end
end


function WAYS.single(self, node, ...)
  expect(self, node.of, ...)
end


function WAYS.call(self, node, ...)
  if self.types:is_passed_on(node) then
    expect(self, node.arguments[1], ...)
    return
  end
  local made = self.types.program:function_of(node.callee)
  for _, list in ipairs(made and made.returns or {}) do
    expect_in(self, made.chunk, list[1], ...)
  end
end


function WAYS.field(self, node, ...)
  local value = self.types.program:exported_value(node)
  if value then
    expect_in(self, node.chunk_of, value, ...)
  end
end


function WAYS.binary(self, node, ...)
  if node.operator == "or" then
    expect(self, node.left, ...)
  end
  if node.operator == "or" or node.operator == "and" then
    expect(self, node.right, ...)
  end
end


-- Checks an expression against the type that it has to be of. One that does not say what it is may be anything.
function expect(self, node, type, where, path, line)
  if not node or type.is == "any" or self.depth > DEPTH_MAX or not visit(self, node, type) then
    return
  elseif type.is == "child" then
    self.on_child(self.chunk, node, type.declaration)
    return
  end
  self.depth = self.depth + 1
  local way = WAYS[node.tag] or expect_literal
  way(self, node, type, where, path, line)
  self.depth = self.depth - 1
end


-- }}}

--- Everything that is expected is expected twice: the first pass tells nothing, and finds out what each variable is
--- expected to be.
function Expected:begin_pass(is_first)
  self.is_first_pass, self.seen = is_first, {}
end


--- Says what an expression of a file has to be.
--- @param node table? expression
--- @param type table of api.lua or types.lua
--- @param where string of what it is part, "ctx.list(…)"
--- @param path string? which part, "labels"
function Expected:expect(chunk, node, type, where, path)
  self.chunk = chunk
  expect(self, node, type, where, path or "", node and node.line)
end


--- The types that a variable is expected to be of: a set, or nil.
function Expected:of_variable(variable)
  return self.flows[variable]
end


-- The assignments to fields of each variable: variable → notes.
local function index_assignments(program)
  local by_variable = {}
  for _, chunk in ipairs(program.list) do
    for _, note in ipairs(chunk.assignments) do
      local variable = note.target.tag == "field" and note.target.of.variable
      if variable then
        by_variable[variable] = by_variable[variable] or {}
        table.insert(by_variable[variable], note)
      end
    end
  end
  return by_variable
end


--- @param types table of types.lua
--- @param report function(chunk, line, text)
--- @param on_child function(chunk, node, declaration) of each child that a reconcile returns
function M.new(types, report, on_child)
  return setmetatable({
    types = types, report = report, on_child = on_child, seen = {}, flows = {}, depth = 0,
    assigned_to = index_assignments(types.program),
  }, Expected)
end


return M
