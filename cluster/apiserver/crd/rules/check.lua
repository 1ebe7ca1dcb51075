--- Checks the rules of a CRD's schema: their texts, and that they compile at a cost that can be borne.
---
--- Rules and wordings: apiextensions-apiserver/pkg/apis/apiextensions/validation/{validation,cel_validation}.go.
local compile = require "cluster.apiserver.crd.rules.compile"
local cost = require "cluster.apiserver.crd.rules.cost"
local escape = require "cluster.apiserver.crd.rules.escape"
local field = require "cluster.apiserver.field"
local follow = require("cluster.apiserver.crd.rules.path").follow
local internal = require "cluster.apiserver.crd.internal"
local structural = require "cluster.apiserver.schema.structural"
local types = require "cluster.apiserver.crd.rules.types"

local M = {}

local trim = compile.trim
local RULES = "x-kubernetes-validations"
local REASONS = { "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired" }
local NO_TYPE = "internal error: failed to construct type information for x-kubernetes-validations rules: "
  .. "unable to convert structural schema to CEL declarations"


local function add(errors, err)
  errors[#errors + 1] = err
end


local function has_line_breaks(text)
  return text:find "[\n\r]" ~= nil
end


local function check_message(rule, path, errors)
  local message, trimmed_message = rule.message or "", trim(rule.message)
  local text = trim(rule.rule)
  if text == "" then
    add(errors, field.required(path .. ".rule", "rule is not specified"))
  elseif message ~= "" and trimmed_message == "" then
    add(errors, field.invalid(path .. ".message", message, "must be non-empty if specified"))
  elseif has_line_breaks(trimmed_message) then
    add(errors, field.invalid(path .. ".message", message, "must not contain line breaks"))
  elseif has_line_breaks(text) and trimmed_message == "" then
    add(errors, field.required(path .. ".message", "message must be specified if rule contains line breaks"))
  end
  if (rule.messageExpression or "") ~= "" and trim(rule.messageExpression) == "" then
    add(errors, field.required(path .. ".messageExpression", "messageExpression must be non-empty if specified"))
  end
end


local function check_reason(reason, path, errors)
  for _, known in ipairs(REASONS) do
    if reason == nil or reason == known then
      return
    end
  end
  add(errors, field.not_supported(path .. ".reason", reason, REASONS))
end


local function check_field_path(field_path, schema, path, errors)
  if field_path == "" then
    return
  elseif trim(field_path) == "" then
    add(errors, field.invalid(path, field_path, "must be non-empty if specified"))
  end
  if has_line_breaks(field_path) then
    add(errors, field.invalid(path, field_path, "must not contain line breaks"))
  end
  if not structural.unreadable(schema) and not follow(field_path, schema) then
    add(errors, field.invalid(path, field_path, "must be a valid path"))
  end
end


--- Adds to `errors` what is wrong with the texts of the rules of the schema at `path`.
function M.texts(schema, path, errors)
  for i, rule in ipairs(schema[RULES] or {}) do
    local at = ("%s.%s[%d]"):format(path, RULES, i - 1)
    check_message(rule, at, errors)
    check_reason(rule.reason, at, errors)
    check_field_path(rule.fieldPath or "", schema, at .. ".fieldPath", errors)
  end
end


local function has_rules(schema)
  return schema[RULES] ~= nil and #schema[RULES] > 0
end


--- The context for the check of a whole schema, nil if the schema has no rules. Errors of rules are collected in
--- `errors`: they are reported behind all others.
--- @param any_cost boolean|nil whether a single rule may cost what it likes: it did before
function M.root(schema, any_cost)
  return compile.any(schema) and {
    schema = schema, in_scope = has_rules(schema), bound = 1.0, is_root = true, total = cost.total(), errors = {},
    any_cost = any_cost,
  } or nil
end


--- The same for a schema within another one. @param step string|nil the name of the property, nil for items and values
function M.within(context, schema, step)
  local factor = context.bound and cost.factor(context.schema)
  return {
    schema = schema, parent = context, step = step, bound = factor and context.bound * factor,
    in_scope = context.in_scope or has_rules(schema),
    total = context.total, errors = context.errors, any_cost = context.any_cost,
  }
end


-- The declaration of what is within another one, when that can be named.
local function part(declaration, step)
  if not step then
    return declaration.elem
  end
  local identifier = escape(step)
  return identifier and declaration.fields and declaration.fields[identifier]
end


local function own_declaration(context)
  return types.declare(context.schema, context.is_root or context.schema["x-kubernetes-embedded-resource"])
end


-- The declaration of a schema's values: part of that of the schema around it if rules see that. False when there is
-- none.
local function declaration_of(context)
  if context.declaration == nil then
    local parent, found = context.parent, nil
    local around = parent and parent.in_scope and declaration_of(parent)
    if around then
      found = part(around, context.step)
    end
    if not found and not (parent and parent.in_scope and around == false) then
      found = own_declaration(context)
    end
    context.declaration = found or false
  end
  return context.declaration
end


-- In what is wrong with rules, types are named from the schema that has the rules.
local function programs_of(context, declaration)
  local list = compile.compile(context.schema, declaration)
  for _, compiled in ipairs(list) do
    if compiled.error or compiled.message_error then
      return compile.compile(context.schema, own_declaration(context))
    end
  end
  return list
end


-- A rule that is wrong, as errors show it.
local function wrong_rule(path, rule, why)
  return field.invalid(path, nil, internal.rule_text(rule) .. ": " .. why)
end


local function check_costs(compiled, context, at)
  local total = cost.of_rule(compiled, context.bound)
  add(context.errors, not context.any_cost and cost.check_one("estimated rule cost", total, at .. ".rule") or nil)
  cost.add(context.total, at .. ".rule", total)
end


local function check_message_expression(compiled, context, at)
  if compiled.message_error then
    add(context.errors, wrong_rule(at, compiled.rule, compiled.message_error))
  elseif compiled.message then
    local most = compiled.message.cost.max
    add(context.errors, not context.any_cost and cost.check_one("estimated messageExpression cost", most, at) or nil)
    cost.add(context.total, at, most)
  end
end


local function check_old_self(compiled, context, at, uncorrelated)
  local rule = compiled.rule
  if compiled.uses_old and uncorrelated then
    add(context.errors, field.invalid(at .. ".rule", rule.rule,
      "oldSelf cannot be used on the uncorrelatable portion of the schema within " .. uncorrelated))
  elseif not compiled.uses_old and rule.optionalOldSelf ~= nil then
    add(context.errors, field.invalid(at .. ".optionalOldSelf", rule.optionalOldSelf,
      "may not be set if oldSelf is not used in rule"))
  end
end


--- Compiles the rules of the schema at `path`; what is wrong with them is added to the context's errors.
--- @param context table see root, within
--- @param uncorrelated string|nil the path of a schema around it that has no old value to compare with
function M.programs(context, path, uncorrelated)
  if not has_rules(context.schema) then
    return
  end
  path = path .. "." .. RULES
  local declaration = declaration_of(context)
  if not declaration then
    add(context.errors, { type = "InternalError", path = path, detail = NO_TYPE })
    return
  end
  for i, compiled in ipairs(programs_of(context, declaration)) do
    local at = ("%s[%d]"):format(path, i - 1)
    check_costs(compiled, context, at)
    if compiled.error then
      add(context.errors, wrong_rule(at .. ".rule", compiled.rule, compiled.error))
    end
    check_message_expression(compiled, context, at .. ".messageExpression")
    check_old_self(compiled, context, at, uncorrelated)
  end
end


--- Adds to `errors` what is wrong with the sum of the costs, when all rules of the schema at `path` were looked at.
function M.costs(context, path, errors)
  cost.check_all(context.total, path, errors)
end


return M
