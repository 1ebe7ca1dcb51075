--- The messages about a rule that a value does not keep, or that cannot be evaluated.
---
--- Wordings: apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go.
local field = require "cluster.apiserver.field"
local gofmt = require "cluster.apiserver.gofmt"
local trim = require("cluster.apiserver.crd.rules.compile").trim

local M = {}

local MESSAGE_MAX = 5 * 1024

--- The object's rules cost too much together.
M.OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"


-- The name of a rule in messages: its message, or else its text.
local function name_of(rule)
  return trim((rule.message or "") ~= "" and rule.message or rule.rule)
end


local function starts_with(text, start)
  return text:sub(1, #start) == start
end


-- True if an expression was given up because it costs too much.
local function is_too_much(message)
  return starts_with(message, "operation cancelled: actual cost limit exceeded")
end


--- The error of a value whose rule went wrong.
function M.invalid(path, schema, words)
  return field.invalid(path, schema.type or "", words)
end


--- The message about an error of an evaluation.
--- @param message string  @param rule table
--- @return string, boolean whether no further rule is evaluated
function M.of_error(message, rule)
  local name = name_of(rule)
  if starts_with(message, "no such overload") then
    return ("'%s': call arguments did not match a supported operator, function or macro signature for rule: %s"):format(
      message, name), false
  elseif is_too_much(message) then
    return ("'%s': no further validation rules will be run due to call cost exceeds limit for rule: %s"):format(
      message, name), true
  end
  return ("%s evaluating rule: %s"):format(message, name), false
end


local function default_detail(rule)
  return (rule.message or "") ~= "" and trim(rule.message) or "failed rule: " .. name_of(rule)
end


local function is_usable(text)
  return type(text) == "string" and text ~= "" and #text <= MESSAGE_MAX and not text:find("\n", 1, true)
end


--- The message about a rule that a value does not keep: from its messageExpression, its message, or its text.
--- @param compiled table see compile.lua  @param bindings table  @param budget integer what is left for the object
--- @param limit integer what one evaluation may cost
--- @return string|nil detail, string|nil failure why no rule is evaluated any more, integer cost
function M.detail(compiled, bindings, budget, limit)
  local rule = compiled.rule
  if not compiled.message then
    return default_detail(rule), nil, 0
  end
  local text, err, cost = compiled.message:run(bindings, limit)
  if cost > budget then
    return nil, "messageExpression evaluation failed due to running out of cost budget, no further validation rules "
      .. "will be run", cost
  elseif err and is_too_much(err.message) then
    return nil, "no further validation rules will be run due to call cost exceeds limit for messageExpression: "
      .. field.quote(rule.messageExpression), cost
  end
  text = not err and type(text) == "string" and trim(text) or nil
  return is_usable(text) and text or default_detail(rule), nil, cost
end


-- The value as its error shows it, and the text before the detail.
local function print_value(schema, value)
  if schema.type == "object" or schema.type == "array" then
    return nil, ""
  elseif math.type(value) == "float" then
    return nil, gofmt.float(value) .. ": "
  end
  return value, ""
end


--- The error of a value that does not keep a rule.
--- @param reason string|nil as the rule has it
function M.rule_error(path, schema, value, detail, reason)
  if reason == "FieldValueForbidden" then
    return field.forbidden(path, detail)
  elseif reason == "FieldValueRequired" then
    return field.required(path, detail)
  end
  local printed_value, prefix = print_value(schema, value)
  if reason == "FieldValueDuplicate" then
    local err = field.duplicate(path, printed_value)
    err.detail = prefix ~= "" and prefix:sub(1, -3) or nil
    return err
  end
  return field.invalid(path, printed_value, prefix .. detail)
end


return M
