--- The expressions of policies and of matchConditions: what they may name, and what they have to be.
---
--- Rules and wordings: apiserver/pkg/admission/plugin/cel/{compile,composition,activation}.go.
local authorization = require "cluster.cel.lib.authorization"
local cel = require "cluster.cel"

local M = {}

local types = cel.types
local TEXTS, MAP = types.list(types.string), types.map(types.string, types.string)


-- An object type from names of fields → types.
local function object(name, fields)
  local declared = {}
  for field, type in pairs(fields) do
    declared[field] = { type = type }
  end
  return types.object("kubernetes." .. name, declared)
end


local KIND = object("GroupVersionKind", { group = types.string, version = types.string, kind = types.string })
local RESOURCE = object("GroupVersionResource",
  { group = types.string, version = types.string, resource = types.string })
local USER = object("UserInfo", {
  username = types.string, uid = types.string, groups = TEXTS, extra = types.map(types.string, TEXTS),
})

local REQUEST = object("AdmissionRequest", {
  kind = KIND, resource = RESOURCE, subResource = types.string, requestKind = KIND, requestResource = RESOURCE,
  requestSubResource = types.string, name = types.string, namespace = types.string, operation = types.string,
  userInfo = USER, dryRun = types.bool, options = types.dyn,
})

local CONDITION = object("NamespaceCondition", {
  status = types.string, type = types.string, lastTransitionTime = types.timestamp, message = types.string,
  reason = types.string,
})
local METADATA = object("NamespaceMetadata", {
  name = types.string, generateName = types.string, namespace = types.string, labels = MAP, annotations = MAP,
  UID = types.string, creationTimestamp = types.timestamp, deletionGracePeriodSeconds = types.int,
  deletionTimestamp = types.timestamp, generation = types.int, resourceVersion = types.string, finalizers = TEXTS,
})
local NAMESPACE = object("Namespace", {
  metadata = METADATA, spec = object("NamespaceSpec", { finalizers = TEXTS }),
  status = object("NamespaceStatus", { conditions = types.list(CONDITION), phase = types.string }),
})

M.request_type, M.namespace_type = REQUEST, NAMESPACE

local PREFIX <const> = "variables."


--- An environment of expressions.
--- @param options table params, authorizer: whether they may be named; variables: name → type, or nil when there are
---   none; resolve: as cel.env has it
function M.environment(options)
  local names = { object = types.dyn, oldObject = types.dyn, request = REQUEST, namespaceObject = NAMESPACE }
  if options.params then
    names.params = types.dyn
  end
  if options.authorizer then
    names.authorizer = authorization.authorizer
    names["authorizer.requestResource"] = authorization.resource_check
  end
  if options.variables then
    local fields = {}
    for name, type in pairs(options.variables) do
      fields[name], names[PREFIX .. name] = { type = type }, type
    end
    names.variables = object("variables", {})
    names.variables.fields = fields
  end
  return cel.env { variables = names, resolve = options.resolve }
end


local SCALARS = {
  bool = true, bytes = true, double = true, duration = true, int = true, null = true, string = true, timestamp = true,
  uint = true,
}


-- The type that a variable has for the expressions that name it: objects, and what has no parts, may be anything.
local function variable_type(type)
  if SCALARS[type.kind] and not type.nullable then
    return type
  elseif type.kind == "list" then
    return types.list(variable_type(type.params[1]))
  elseif type.kind == "map" then
    return types.map(variable_type(type.params[1]), variable_type(type.params[2]))
  end
  return types.dyn
end


--- An environment that knows the types of what a policy matches. Variables may be added to it: an expression may name
--- those that are there when it is checked.
--- @param object_type table that of `object` and `oldObject`  @param params table|nil that of `params`, nil: none
--- @return table env, function add(name, type); type: nil when the variable's expression has none
function M.typed_environment(object_type, params)
  local variables = object("variables", {})
  local env = cel.env { variables = {
    object = object_type, oldObject = object_type, params = params, request = REQUEST, namespaceObject = NAMESPACE,
    authorizer = authorization.authorizer, variables = variables,
  } }
  return env, function(name, type)
    variables.fields[name] = { type = type and variable_type(type) or types.dyn }
  end
end


local function is_one_of(type, wanted)
  for _, other in ipairs(wanted) do
    if types.exact(type, other) then
      return true
    end
  end
  return false
end


local function shown_type(type)
  return #type.params == 0 and type.name or types.format(type)
end


local function mistyped(type, wanted)
  local names = {}
  for i, other in ipairs(wanted) do
    names[i] = shown_type(other)
  end
  local type_text = shown_type(type)
  if #names == 1 then
    return ("must evaluate to %s but got %s"):format(names[1], type_text)
  end
  return ("must evaluate to one of [%s] but got %s"):format(table.concat(names, " "), type_text)
end


M.BOOL, M.STRING, M.STRING_OR_NULL = { types.bool }, { types.string }, { types.string, types.null }


--- Compiles an expression.
--- @param wanted table|nil the types it may have, nil: any
--- @return table|nil program, or nil and what is wrong
function M.compile(env, text, wanted)
  local program, issues = env:compile(text)
  if not program then
    return nil, "compilation failed: " .. tostring(issues)
  elseif wanted and not is_one_of(program.type, wanted) then
    return nil, mistyped(program.type, wanted)
  elseif program.failed then
    return nil, "program instantiation failed: " .. program.failed
  end
  return program
end


--- The environments of one policy, and its variables, compiled one after the other: each may name those before it.
--- @param spec table of the policy
--- @param strict boolean the rules for a policy that is being written: matchConditions cannot name variables, and other
---   expressions can only if the policy has some
--- @param resolve function|nil as cel.env has it, for mutations
--- @return table { full, plain, conditions: environments with and without an authorizer, and of matchConditions;
---   mutations: one whose expressions make values; variables: a list of { name, text, program or error } }
function M.of_policy(spec, strict, resolve)
  local list, known = {}, {}
  local params = spec.paramKind ~= nil
  local has_variables = not strict or #(spec.variables or {}) > 0
  local function environment(authorizer, made)
    return M.environment {
      params = params, authorizer = authorizer, variables = has_variables and known or nil, resolve = made,
    }
  end
  local full = environment(true)
  for i, variable in ipairs(spec.variables or {}) do
    local program, failure = M.compile(full, variable.expression)
    list[i] = { name = variable.name, text = variable.expression, program = program, error = failure }
    known[variable.name] = program and variable_type(program.type) or types.dyn
    full = environment(true)
  end
  return {
    full = full, plain = environment(false), mutations = resolve and environment(true, resolve), variables = list,
    conditions = strict and M.environment { params = params, authorizer = true } or full,
  }
end


return M
