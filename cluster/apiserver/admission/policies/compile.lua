--- A policy as it is evaluated: its expressions compiled, once for each version of it.
---
--- Rules: apiserver/pkg/admission/plugin/policy/validating/plugin.go (compilePolicy).
local cel = require "cluster.cel"
local expressions = require "cluster.apiserver.admission.expressions"
local patch_types = require "cluster.apiserver.admission.policies.patch_types"

local M = {}

local NONE = {}


local function compile_each(list, env, wanted, key)
  local compiled = {}
  for i, item in ipairs(list or NONE) do
    local text = item[key] or ""
    if text ~= "" then
      local program, failure = expressions.compile(env, text, wanted)
      compiled[i] = { item = item, text = text, program = program, error = failure }
    end
  end
  return compiled
end


--- matchConditions, of a policy or a webhook. @return list of { item, text, program or error }
function M.conditions(list, env)
  return compile_each(list, env, expressions.BOOL, "expression")
end


-- The type of `variables` for has(variables.name), which is true of each.
local function names_of(variables)
  local fields, items = {}, {}
  for _, variable in ipairs(variables) do
    fields[variable.name], items[variable.name] = { type = cel.types.bool }, true
  end
  return cel.values.object(items, cel.types.object("kubernetes.variables", fields), function(_, item)
    return item
  end)
end


--- A policy that changes objects.
--- @return table { name, spec, conditions, variables, names: as of M.policy; mutations: a list of { item, text, program
---   or error } }
function M.mutating(policy)
  local spec = policy.spec
  local envs = expressions.of_policy(spec, false, patch_types.resolve)
  local mutations = {}
  for i, item in ipairs(spec.mutations or NONE) do
    local is_patch = item.patchType == "JSONPatch"
    local text = (is_patch and item.jsonPatch or item.applyConfiguration).expression
    local program, failure = expressions.compile(envs.mutations, text,
      is_patch and patch_types.JSON_PATCHES or patch_types.OBJECT)
    mutations[i] = { item = item, text = text, program = program, error = failure }
  end
  return {
    name = policy.metadata.name, spec = spec, mutations = mutations, variables = envs.variables,
    conditions = M.conditions(spec.matchConditions, envs.full), names = names_of(envs.variables),
  }
end


--- @param policy table the object
--- @return table { name, spec, count (of validations), conditions, validations, messages, annotations: lists of { item,
---   text, program or error }, messages with holes; variables, with a program or an error each; names: `variables` }
function M.policy(policy)
  local spec = policy.spec
  local envs = expressions.of_policy(spec, false)
  return {
    name = policy.metadata.name, spec = spec, count = #(spec.validations or NONE),
    conditions = M.conditions(spec.matchConditions, envs.full),
    validations = compile_each(spec.validations, envs.full, expressions.BOOL, "expression"),
    messages = compile_each(spec.validations, envs.plain, expressions.STRING, "messageExpression"),
    annotations = compile_each(spec.auditAnnotations, envs.full, expressions.STRING_OR_NULL, "valueExpression"),
    variables = envs.variables, names = names_of(envs.variables),
  }
end


return M
