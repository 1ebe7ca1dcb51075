--- The Common Expression Language, as Kubernetes has it.
---
---     local env = cel.env { variables = { self = cel.types.int } }
---     local program, issues = env:compile "self > 0"
---     local value, err, cost = program:run({ self = 1 }, 1000000)
---
--- An environment says which variables and functions there are; it never changes and may be shared. A program is
--- compiled once and run often. Expressions compute without side effects, always end, and count what they cost.
local later = require "cluster.later"
local checker = later.module "cluster.cel.checker"
local estimate = later.module "cluster.cel.estimate"
local frames = require "cluster.cel.frame"
local issues_module = later.module "cluster.cel.issues"
local json = require "cluster.cel.json"
local libraries = later.module "cluster.cel.libraries"
local parser = later.module "cluster.cel.parser"
local plan = later.module "cluster.cel.plan"
local types = require "cluster.cel.types"
local validate = later.module "cluster.cel.validate"
local values = require "cluster.cel.values"

local M = {
  types = types,
  values = values,
  from_json = json.from_json,
  to_json = json.to_json,
}

-- Of one run, when the caller says nothing else: PerCallLimit of apiserver/pkg/apis/cel/config.go.
local LIMIT = 1000000

local Env = {}
Env.__index = Env

local Program = {}


local function add_variables(names, variables)
  for name, type in pairs(variables or {}) do
    names[name] = { name = name, type = type, bound = true }
  end
end


--- Makes an environment.
--- @param options table|nil
---   variables        name → type; a name may have dots
---   types            name → type that expressions may name, beside the language's
---   resolve          function(name) → an object type that expressions may make values of, or nil
---   container        "a.b": names are looked up in it first
---   mixed_literals   lists and maps in an expression may have elements of several types, and constants are not read
---                    before a run
---   strict_presence  has(a.b) fails when a has no fields
---   quoted_fields    a.`b-c` is read
---   bindings         cel.bind(name, value, expression) is there
---   unchecked        types are not checked before a run
--- @return table env
function M.env(options)
  options = options or {}
  local env = setmetatable({
    names = libraries.type_names(options.types),
    functions = libraries.functions(),
    resolve = options.resolve,
    container = options.container or "",
    mixed_literals = options.mixed_literals,
    strict_presence = options.strict_presence,
    quoted_fields = options.quoted_fields,
    bindings = options.bindings,
    unchecked = options.unchecked,
  }, Env)
  add_variables(env.names, options.variables)
  return env
end


-- Computes the estimated cost when it is first read, because it is seldom needed.
function Program:__index(name)
  if name == "cost" then
    local cost = estimate.estimate(self.node, self.env)
    rawset(self, "cost", cost)
    return cost
  end
  return rawget(Program, name)
end


local function new_program(env, node)
  local run, bound, failed = plan.plan(node, env, json.converter)
  return setmetatable({
    run_node = run, bound = bound, failed = failed, type = node.type, node = node, env = env,
  }, Program)
end


-- The checked tree of an expression, or nil and what is wrong.
local function checked(env, text)
  local node, issues = parser.parse(text, env)
  if not node then
    return nil, issues
  end
  issues = issues_module.new(text)
  if env.unchecked then
    checker.check(node, env, nil)
    return node
  end
  checker.check(node, env, issues)
  if issues.count == 0 and not env.mixed_literals then
    validate.check(node, issues)
  end
  if issues.count > 0 then
    return nil, issues
  end
  return node
end


--- The type of an expression, without a program of it.
--- @param text string
--- @return table|nil type
--- @return table|nil issues when there is none: as `compile` has them
function Env:type_of(text)
  local node, issues = checked(self, text)
  return node and node.type, issues
end


--- Compiles an expression.
--- @param text string
--- @return table|nil program { type, cost = { min, max }, bound, failed }: `cost` is what a run costs at least and at
--- most, as far as types
---   say how large values are; bound[name] says whether it uses that variable;
---   `failed` why every run fails that comes to it: int('a')
--- @return table|nil issues when there is no program: tostring(issues) is what cel-go prints; issues.list has
---   { line, column, message } of each
function Env:compile(text)
  local node, issues = checked(self, text)
  if not node then
    return nil, issues
  end
  return new_program(self, node)
end


--- Runs it.
--- @param bindings table|nil name of a variable → value; those that the program does not use are passed over
--- @param limit number|nil of the cost; 1000000 when it is left out
--- @param late table|nil name of a variable → what returns its value, or nil and a message, when it is first read
--- @return any|nil value
--- @return table|nil err { message, exceeded } when there is no value; `exceeded` when it cost too much, `bug` when
---   it is our mistake
--- @return integer cost
function Program:run(bindings, limit, late)
  local frame = frames.new(limit or LIMIT)
  for name, slot in pairs(self.bound) do
    frame[slot] = bindings and bindings[name]
    frame[-slot] = late and late[name]
  end
  local ok, value, message = pcall(self.run_node, frame)
  if value == frames.INTERRUPTED then
    return nil, { message = "operation interrupted" }, frame.cost
  elseif value == frames.EXCEEDED or frame.cost > frame.limit then
    return nil, { message = "operation cancelled: actual cost limit exceeded", exceeded = true }, frame.cost
  elseif not ok and type(value) == "table" and value.unfit then
    return nil, { message = value.unfit }, frame.cost
  elseif not ok then
    -- A value that the types did not expect; it must not end the request.
    return nil, { message = "no such overload", bug = value }, frame.cost
  elseif value == nil then
    return nil, { message = message }, frame.cost
  end
  return value, nil, frame.cost
end


return M
