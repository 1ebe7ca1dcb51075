--- Compiles the rules of one schema, without those of the schemas within it.
---
--- Rules and wordings: apiextensions-apiserver/pkg/apiserver/schema/cel/compilation.go.
local cel = require "cluster.cel"
local follow = require("cluster.apiserver.crd.rules.path").follow

local M = {}

local RULES = "x-kubernetes-validations"
local REQUEST_MAX = 3 * 1024 * 1024


--- A text without the spaces around it; "" for none.
function M.trim(text)
  return (text or ""):match "^%s*(.-)%s*$"
end


--- Returns true if a schema, or one within it, has rules. Alternatives (anyOf …) have none.
function M.any(schema)
  if schema[RULES] and #schema[RULES] > 0 then
    return true
  end
  local additional = schema.additionalProperties
  if type(schema.items) == "table" and M.any(schema.items) or type(additional) == "table" and M.any(additional) then
    return true
  end
  for _, property in pairs(schema.properties or {}) do
    if M.any(property) then
      return true
    end
  end
  return false
end


-- Environments with and without an old value, each made when it is first asked for.
local function environments(type)
  local made = {}
  return function(optional)
    optional = optional == true
    made[optional] = made[optional] or cel.env {
      variables = { self = type, oldSelf = optional and cel.types.optional(type) or type },
    }
    return made[optional]
  end
end


local function add_message(result, rule, env)
  local program, issues = env:compile(rule.messageExpression)
  if not program then
    result.message_error = "messageExpression compilation failed: " .. tostring(issues)
  elseif not cel.types.exact(program.type, cel.types.string) then
    result.message_error = "messageExpression must evaluate to a string"
  else
    result.message = program
  end
end


local function compile(rule, schema, env, cardinality)
  local result = { rule = rule, cardinality = cardinality }
  if M.trim(rule.rule) == "" then
    return result
  end
  local program, issues = env:compile(rule.rule)
  if not program then
    result.error = "compilation failed: " .. tostring(issues)
    return result
  elseif not cel.types.exact(program.type, cel.types.bool) then
    result.error = "cel expression must evaluate to a bool"
    return result
  end
  result.program, result.uses_old = program, program.bound.oldSelf ~= nil
  if (rule.messageExpression or "") ~= "" then
    add_message(result, rule, env)
  end
  if (rule.fieldPath or "") ~= "" then
    result.field_path = follow(rule.fieldPath, schema)
  end
  return result
end


--- The compiled rules of a schema, in their order. Each is
---   rule           as the schema has it
---   program        nil when it does not compile: `error` says why. Without both it is empty
---   uses_old       whether it speaks of oldSelf
---   cardinality    how often it is evaluated at most, by the size of a request
---   message        the program of messageExpression; `message_error` why it does not compile
---   field_path     fieldPath as paths of errors have it
--- @param schema table with rules  @param declaration table see types.lua
--- @return table list
function M.compile(schema, declaration)
  local environment = environments(declaration.type)
  local cardinality = REQUEST_MAX // (declaration.min + 1)
  local list = {}
  for i, rule in ipairs(schema[RULES] or {}) do
    list[i] = compile(rule, schema, environment(rule.optionalOldSelf), cardinality)
  end
  return list
end


return M
