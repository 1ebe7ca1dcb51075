--- Judges objects by the rules of their schema.
---
--- A schema is compiled once, to a tree of nodes: { rules =, type =, schema =, items =, values =, properties = }. Only
--- parts that have rules, or have them further below, get a node. Rules and wordings:
--- apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go.
local cel = require "cluster.cel"
local compile = require "cluster.apiserver.crd.rules.compile"
local correlation = require "cluster.apiserver.crd.rules.correlation"
local escape = require "cluster.apiserver.crd.rules.escape"
local gofmt = require "cluster.apiserver.gofmt"
local host = require "cluster.host"
local new_run = require("cluster.apiserver.crd.rules.run").new
local old_items = require "cluster.apiserver.schema.old_items"
local outcome = require "cluster.apiserver.crd.rules.outcome"
local types = require "cluster.apiserver.crd.rules.types"

local M = {}

local null, is_array = host.json.null, host.json.is_array
local RULES, EMBEDDED = "x-kubernetes-validations", "x-kubernetes-embedded-resource"

-- The limits of cost for one evaluation, and for all evaluations of an object.
local CALL_MAX <const> = 1000000
M.BUDGET = 10000000

local node_of


-- The declaration of a property, nil when rules cannot see it.
local function declaration_of(property, name, around)
  local identifier = escape(name)
  if not identifier then
    return types.declare(property, property[EMBEDDED])
  end
  return around and around.fields and around.fields[identifier]
end


local function nodes_of(properties, declaration)
  local nodes = {}
  for name, property in pairs(properties or {}) do
    local inner = declaration_of(property, name, declaration)
    nodes[name] = inner and node_of(property, inner) or nil
  end
  return next(nodes) and nodes or nil
end


local function any_uses_old(rules)
  for _, compiled in ipairs(rules or {}) do
    if compiled.uses_old then
      return true
    end
  end
  return false
end


function node_of(schema, declaration)
  local rules = schema[RULES] and declaration and compile.compile(schema, declaration)
  local elem, additional = declaration and declaration.elem, schema.additionalProperties
  local node = {
    rules = rules and #rules > 0 and rules or nil,
    items = type(schema.items) == "table" and node_of(schema.items, elem) or nil,
    values = type(additional) == "table" and node_of(additional, elem) or nil,
    properties = nodes_of(schema.properties, declaration),
  }
  if not next(node) then
    return nil
  end
  node.schema, node.type, node.uses_old = schema, declaration and declaration.type, any_uses_old(node.rules)
  node.names = gofmt.sorted_keys(node.properties or {})
  return node
end


-- The values of the names in rules, and the same for rules whose old value may be missing. A stored value may not fit
-- the type that its schema has now: `unfit` says so.
local function bindings_of(node, value, old)
  local self, self_unfit = cel.from_json(value, node.type)
  local unfit = { self = self_unfit }
  local plain = { self = self, unfit = unfit }
  if not node.uses_old then
    return plain, plain
  end
  local optional = { self = self, oldSelf = cel.values.none, unfit = unfit }
  if old ~= nil then
    plain.oldSelf, unfit.oldSelf = cel.from_json(old, node.type)
    optional.oldSelf = plain.oldSelf ~= nil and cel.values.optional(plain.oldSelf) or nil
  end
  return plain, optional
end


-- Why an expression has no value.
local function why(err, bindings)
  local name = err.message:match "^no such attribute%(s%): (%w+)$"
  return name and bindings.unfit[name] or err.message
end


-- Evaluates a rule. @return boolean|nil whether the value keeps it; nil: it has been told what went wrong
local function evaluate(run, node, compiled, bindings)
  local result, err, cost = compiled.program:run(bindings, CALL_MAX)
  if cost > run.budget then
    run:stop(node.schema, outcome.OUT_OF_BUDGET)
    return nil
  end
  run.budget = run.budget - cost
  if not err then
    return result == true
  end
  local words, ends = outcome.of_error(why(err, bindings), compiled.rule)
  if ends then
    run:stop(node.schema, words)
  else
    run:add(outcome.invalid(run:path(), node.schema, words))
  end
  return nil
end


-- A rule is not kept: says so, or warns when it was not kept before either.
local function break_rule(run, node, compiled, bindings, value, way)
  local detail, failure, cost = outcome.detail(compiled, bindings, run.budget, CALL_MAX)
  local path = run:path(compiled.field_path)
  local err = failure and outcome.invalid(path, node.schema, failure)
    or outcome.rule_error(path, node.schema, value, detail, compiled.rule.reason)
  if compiled.uses_old or not way:is_unchanged() then
    run:add(err)
  else
    run:warn(err)
  end
  run.budget = failure and -1 or run.budget - cost
end


local function check_rules(run, node, value, old, way)
  if run.budget <= 0 then
    return run:stop(node.schema, outcome.OUT_OF_BUDGET)
  end
  local plain, optional = bindings_of(node, value, old)
  for _, compiled in ipairs(node.rules) do
    local is_optional = compiled.rule.optionalOldSelf == true
    local bindings = is_optional and optional or plain
    if compiled.error then
      run:add(outcome.invalid(run:path(), node.schema, "rule compile error: " .. compiled.error))
    elseif compiled.program and (not compiled.uses_old or old ~= nil or is_optional)
      and evaluate(run, node, compiled, bindings) == false then
      break_rule(run, node, compiled, bindings, value, way)
    end
    if run.budget < 0 then
      return
    end
  end
end


local check


local function check_items(run, node, list, old, way)
  local find = old_items(node.schema, old)
  for i, item in ipairs(list) do
    local before = find and find(item)
    run:enter("[" .. i - 1 .. "]")
    check(run, node.items, item, before, way:index(i))
    run:leave()
    if run.budget < 0 then
      return
    end
  end
end


local function check_members(run, node, object, old, way)
  local before = type(old) == "table" and not is_array(old) and old or {}
  local function visit(inner, key, step)
    run:enter(step)
    check(run, inner, object[key], before[key], way:key(key))
    run:leave()
    return run.budget < 0
  end
  for _, key in ipairs(node.values and gofmt.sorted_keys(object) or {}) do
    if visit(node.values, key, "[" .. key .. "]") then
      return
    end
  end
  for _, name in ipairs(node.names) do
    if object[name] ~= nil and visit(node.properties[name], name, "." .. name) then
      return
    end
  end
end


function check(run, node, value, old, way)
  if value == null then
    return
  elseif old == null then
    old = nil
  end
  if node.rules then
    check_rules(run, node, value, old, way)
  end
  if run.budget < 0 or type(value) ~= "table" then
    return
  elseif is_array(value) then
    return node.items and check_items(run, node, value, old, way)
  end
  check_members(run, node, value, old, way)
end


-- @param options table old, way, root: see compile
local function judge(node, value, options)
  local run = new_run(options.root, options.budget or M.BUDGET)
  check(run, node, value, options.old, options.way or correlation.root())
  return run.errors, run.warnings, run.budget
end


--- Compiles all rules of a schema.
--- @param schema table structural  @param is_root boolean whether it is that of a whole resource
--- @return function|nil judge(value, options) -> errors, warnings (lists of field errors), what is left of the budget;
---   nil when there are no rules. Options:
---   old     the value that is replaced, nil for a new one
---   way     see correlation.root: what may stay wrong; nil: nothing
---   root    where the value stands, for paths; nil: it is the object
---   budget  what the evaluations may cost together, nil for that of an object
function M.compile(schema, is_root)
  local node = compile.any(schema) and node_of(schema, types.declare(schema, is_root)) or nil
  return node and function(value, options)
    return judge(node, value, options)
  end
end


return M
