--- Finds the types of a script's values, as far as its text leaves no doubt (parser.lua): kinds, objects of them and
--- parts of those, ctx. Anything else is nil, and so is a variable that is assigned to again.
---
--- A type is one of { kind = "apps/v1/Deployment" }, of what moonloop.kind made; { is_ctx = true };
--- { list_of = type }; and { schema =, path = "spec.users[]", of = "Deployment of apps/v1", is_root = } of an object,
--- or of a part of one, with its schema.
local builtin = require "cluster.apiserver.schema.builtin"

local M = {}

local CTX = { is_ctx = true }
-- The parameters of a controller's functions: of its kind, or ctx.
local FUNCTIONS = {
  reconcile = { "object", "ctx" }, finalize = { "object", "ctx" }, default = { "object" },
  validate = { "object", "object", "ctx" },
}
local ALWAYS = { apiVersion = true, kind = true, metadata = true, spec = true, status = true }

local Types = {}
Types.__index = Types

local type_of

-- The value of a variable that never changes. A parameter, or a variable that may be anything, stays itself.
local function constant(node)
  while node and node.tag == "variable" and not node.variable.is_assigned and node.variable.value do
    node = node.variable.value
  end
  return node
end


-- The name of the function in `moonloop.NAME(…)`; nil: it is another call.
local function library_call(call)
  local callee = constant(call.callee)
  local module = callee and callee.tag == "field" and constant(callee.of)
  local required = module and module.tag == "call" and module.callee
  local is_library = required and required.tag == "global" and required.name == "require"
    and module.arguments[1] and module.arguments[1].text == "moonloop"
  return is_library and callee.name or nil
end


local function object_of(self, kind)
  local group, version, name = kind:match "^(.-)/?([^/]+)/([^/]+)$"
  local schema = self.schema_of(group, version, name)
  self.kinds[kind] = schema ~= nil
  return schema and {
    schema = schema, path = "", of = ("%s of %s"):format(name, kind:match "^(.*)/"), is_root = true,
  } or nil
end


local function has_any_field(schema)
  return schema["x-kubernetes-preserve-unknown-fields"] or schema["x-kubernetes-embedded-resource"]
    or schema.additionalProperties ~= nil or type(schema.properties) ~= "table"
end


--- The type of a field of an object; nil: nothing is known. Second: the names that there are, if this is not one.
function M.field(object, name)
  local schema = object.schema
  if object.is_root and name == "metadata" then
    schema = builtin.of("", "v1", "Pod") -- CRDs say nothing of it
  end
  local properties = schema.properties
  local child = type(properties) == "table" and properties[name]
  local values = schema.additionalProperties
  if not child and type(values) == "table" and type(properties) ~= "table" then
    child = values
  end
  if type(child) == "table" then
    return { schema = child, path = object.path == "" and name or object.path .. "." .. name, of = object.of }
  elseif has_any_field(schema) or object.is_root and ALWAYS[name] then
    return nil
  end
  return nil, properties
end


-- The type of x[i], and of the values that ipairs and pairs give.
local function item(of)
  if not of or of.list_of then
    return of and of.list_of
  end
  local values = of.schema and (of.schema.items or of.schema.properties == nil and of.schema.additionalProperties)
  return type(values) == "table" and { schema = values, path = of.path .. "[]", of = of.of } or nil
end


-- The type that a parameter has wherever its function is called.
local function given_type(variable)
  local made_by, found = variable.parameter_of, nil
  if made_by.is_elsewhere then
    return nil
  end
  for _, use in ipairs(made_by.uses) do
    local given = use(variable.index)
    if not given or found and given.schema ~= found.schema then
      return nil
    end
    found = given
  end
  return found and (found.schema or found.is_ctx) and found or nil
end


-- The type of a parameter; one that depends on itself has none.
local function parameter(variable)
  if variable.type == nil then
    variable.type = false
    variable.type = given_type(variable) or variable.name == "ctx" and CTX or false
  end
  return variable.type or nil
end


local function variable_type(self, variable)
  if variable.is_assigned then
    return nil
  elseif variable.parameter_of then
    return parameter(variable)
  elseif variable.item_of then
    local call = variable.item_of
    local by = call.tag == "call" and call.callee.tag == "global" and call.callee.name
    return (by == "ipairs" or by == "pairs") and item(type_of(self, call.arguments[1])) or nil
  end
  return type_of(self, variable.value)
end


local function call_type(self, call)
  local callee, first, second = call.callee, call.arguments[1], call.arguments[2]
  if callee.tag == "global" and callee.name == "assert" then
    return type_of(self, first)
  elseif library_call(call) == "kind" and first and second and first.tag == "string" and second.tag == "string" then
    local kind = first.text .. "/" .. second.text
    object_of(self, kind) -- so that it is in `kinds`
    return { kind = kind }
  elseif callee.tag == "field" and (callee.name == "get" or callee.name == "list") then
    local kind = type_of(self, first)
    local of = type_of(self, callee.of)
    local object = kind and kind.kind and of and of.is_ctx and object_of(self, kind.kind)
    return object and (callee.name == "get" and object or { list_of = object }) or nil
  end
end


local function find_type(self, node)
  if node.tag == "variable" then
    return variable_type(self, node.variable)
  elseif node.tag == "call" then
    return call_type(self, node)
  elseif node.tag == "item" then
    return item(type_of(self, node.of))
  elseif node.tag == "field" then
    local of = type_of(self, node.of)
    return of and of.schema and M.field(of, node.name) or nil
  end
end


-- The type of an expression; one that depends on itself has none.
function type_of(self, node)
  if not node then
    return nil
  elseif self.found[node] == nil then
    self.found[node] = false
    self.found[node] = find_type(self, node) or false
  end
  return self.found[node] or nil
end


Types.of = type_of


-- The function that `node` names, and its `uses` get this one.
local function add_use(node, use)
  local made = constant(node)
  if made and made.tag == "function" then
    made.uses[#made.uses + 1] = use
    if node.tag == "variable" then
      made.is_elsewhere = made.is_elsewhere or node.variable.value ~= made -- has two names
      made.named = node.variable
    end
  end
end


local function add_controller(self, fields)
  for name, parameters in pairs(FUNCTIONS) do
    add_use(fields[name], function(index)
      local kind = parameters[index] == "object" and type_of(self, fields.reconciles)
      return parameters[index] == "ctx" and CTX or kind and kind.kind and object_of(self, kind.kind) or nil
    end)
  end
end


local function add_call(self, call)
  local first, second = call.arguments[1], call.arguments[2]
  add_use(call.callee, function(index)
    return type_of(self, call.arguments[index])
  end)
  local name = library_call(call)
  if name == "controller" and first and first.tag == "table" then
    add_controller(self, first.fields)
  elseif name == "kind" then
    type_of(self, call)
  elseif name == "index" or name == "watch" then
    add_use(second, function(index)
      local kind = index == 1 and type_of(self, first)
      return index == 2 and CTX or kind and kind.kind and object_of(self, kind.kind) or nil
    end)
  end
end


--- Types of the expressions of a text. Afterwards `kinds` has those it names: "apps/v1/Deployment" → is it known.
--- @param parsed table what parser.lua returned
--- @param schema_of function(group, version, kind) → schema, or nil
function M.new(parsed, schema_of)
  local self = setmetatable({ schema_of = schema_of, found = {}, kinds = {} }, Types)
  for _, call in ipairs(parsed.calls) do
    add_call(self, call)
  end
  for _, made in ipairs(parsed.functions) do
    made.is_elsewhere = made.is_elsewhere or made.named ~= nil and made.named.mentions ~= #made.uses
  end
  return self
end


return M
