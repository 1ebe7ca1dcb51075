--- Evaluates a policy for one write and one parameter.
---
--- Rules and wordings: apiserver/pkg/admission/plugin/policy/validating/validator.go,
--- pkg/admission/plugin/cel/{condition,composition}.go, pkg/admission/plugin/webhook/matchconditions/matcher.go.
local host = require "cluster.host"
local status = require "cluster.apiserver.status"

local M = {}

-- The most that all expressions of one kind may cost together.
local BUDGET <const>, CONDITIONS_BUDGET <const> = 10000000, 2500000
local MESSAGE_MAX <const> = 5 * 1024
local OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"


local function trim(text)
  return (text or ""):match "^%s*(.-)%s*$"
end


-- The variables, each evaluated when it is first read. run.variable_cost counts what that costs.
local function variables_of(policy, bindings, run)
  local later = {}
  for _, variable in ipairs(policy.variables) do
    later["variables." .. variable.name] = function()
      if not variable.program then
        return nil, ('composited variable "%s" fails to compile: %s'):format(variable.name, variable.error)
      end
      local value, err, cost = variable.program:run(bindings, nil, later)
      run.variable_cost = run.variable_cost + cost
      if err then
        return nil, ('composited variable "%s" fails to evaluate: %s'):format(variable.name, err.message)
      end
      later["variables." .. variable.name] = function()
        return value
      end
      return value
    end
  end
  return later
end


-- Evaluates expressions one after the other.
-- @return list|nil of { value } or { error }, with holes where there is no expression; nil: they cost too much
-- @return integer what is left of the budget
local function run_all(list, count, policy, bindings, budget)
  local results, run = {}, { variable_cost = 0 }
  local later = variables_of(policy, bindings, run)
  for i = 1, count do
    local compiled = list[i]
    if compiled and compiled.error then
      results[i] = { error = "compilation error: " .. compiled.error }
    elseif compiled then
      local value, err, cost = compiled.program:run(bindings, nil, later)
      budget = budget - cost - run.variable_cost
      run.variable_cost = 0
      if budget < 0 then
        return nil, budget
      elseif err then
        results[i] = { error = ("expression '%s' resulted in error: %s"):format(compiled.text, err.message) }
      else
        results[i] = { value = value }
      end
    end
  end
  return results, budget
end


--- Evaluates the matchConditions of a policy or a webhook: "yes" if they hold, "no", or nil and why that is not known.
--- @param policy table its conditions and variables are used; see compile.lua
function M.conditions(policy, bindings)
  local list = policy.conditions
  local input = setmetatable({ namespaceObject = host.json.null }, { __index = bindings })
  local results = run_all(list, #list, policy, input, CONDITIONS_BUDGET)
  if not results then
    return nil, OUT_OF_BUDGET
  end
  local problems = {}
  for _, result in ipairs(results) do
    problems[#problems + 1] = result.error
    if result.value == false then
      return "no"
    end
  end
  if #problems > 0 then
    return nil, status.aggregate(problems)
  end
  return "yes"
end


--- The value of a mutation's expression. @param mutation table of compile.mutating
--- @return any|nil value, or nil and what is wrong
function M.mutation(policy, mutation, bindings)
  if mutation.error then
    return nil, mutation.error
  end
  local input = setmetatable({ variables = policy.names }, { __index = bindings })
  local results = run_all({ mutation }, 1, policy, input, BUDGET)
  if not results then
    return nil, OUT_OF_BUDGET
  end
  return results[1].value, results[1].error
end


local function is_usable(text)
  return type(text) == "string" and text ~= "" and #text <= MESSAGE_MAX and not text:find("\n", 1, true)
end


local function denial(validation, message)
  local text = message and type(message.value) == "string" and trim(message.value)
  if not is_usable(text) then
    text = trim(validation.message)
  end
  if text == "" then
    text = "failed expression: " .. trim(validation.expression)
  end
  return { message = text, reason = validation.reason or "Invalid" }
end


local function annotate(policy, bindings, verdict)
  local results = run_all(policy.annotations, #policy.annotations, policy, bindings, BUDGET)
  if not results then
    return false
  end
  for i, result in ipairs(results) do
    local text = type(result.value) == "string" and trim(result.value) or ""
    if result.error and policy.spec.failurePolicy ~= "Ignore" then
      verdict.errors[#verdict.errors + 1] = result.error
    elseif not result.error and text ~= "" then
      verdict.annotations[#verdict.annotations + 1] = { key = policy.annotations[i].item.key, value = text }
    end
  end
  return true
end


--- @param policy table see compile.lua  @param bindings table see activation.lua
--- @return table { denied = list of { message, reason, index }, errors = messages of audit annotations, annotations =
---   list of { key, value } }
function M.policy(policy, bindings)
  local verdict = { denied = {}, errors = {}, annotations = {} }
  local function fail(message, index)
    if policy.spec.failurePolicy ~= "Ignore" then
      verdict.denied[#verdict.denied + 1] = { message = message, index = index or 0 }
    end
    return verdict
  end
  local names = policy.names
  local input = setmetatable({ variables = names }, { __index = bindings })
  local answer, why = "yes", nil
  if #policy.conditions > 0 then
    answer, why = M.conditions(policy, input)
  end
  if not answer then
    return fail(why)
  elseif answer == "no" then
    return verdict
  end
  local results, remaining_budget = run_all(policy.validations, policy.count, policy, input, BUDGET)
  if not results then
    return fail(OUT_OF_BUDGET)
  end
  local messages = run_all(policy.messages, policy.count, policy, input, remaining_budget)
  for i = 1, policy.count do
    local result = results[i] or {}
    if result.error then
      fail(result.error, i - 1)
    elseif not messages then
      fail("failed messageExpression: " .. OUT_OF_BUDGET, i - 1)
    elseif result.value ~= true then
      local denied = denial(policy.spec.validations[i], messages[i])
      denied.index = i - 1
      verdict.denied[#verdict.denied + 1] = denied
    end
  end
  if not annotate(policy, input, verdict) then
    verdict.denied, verdict.annotations = {}, {}
    return fail(OUT_OF_BUDGET)
  end
  return verdict
end


return M
