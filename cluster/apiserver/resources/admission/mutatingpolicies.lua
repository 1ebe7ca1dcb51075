--- MutatingAdmissionPolicies; admission/policies/mutations.lua does what they say.
---
--- Rules and wordings: kubernetes/pkg/apis/admissionregistration/validation/validation.go, v1/defaults.go.
local age = require "cluster.apiserver.tables.age"
local expressions = require "cluster.apiserver.admission.expressions"
local field = require "cluster.apiserver.field"
local parts = require "cluster.apiserver.resources.admission.policy_parts"
local patch_types = require "cluster.apiserver.admission.policies.patch_types"
local rules = require "cluster.apiserver.resources.admission.rules"

local NONE = {}
local REINVOCATIONS = { "IfNeeded", "Never" }
local PATCHES = { "ApplyConfiguration", "JSONPatch" }

-- Type of a patch → the field with its expression, that of the other type, and what it evaluates to.
local KINDS = {
  ApplyConfiguration = { own = "applyConfiguration", other = "jsonPatch", wanted = patch_types.OBJECT },
  JSONPatch = { own = "jsonPatch", other = "applyConfiguration", wanted = patch_types.JSON_PATCHES },
}


local function check_mutation(mutation, env, path, errors)
  local name = mutation.patchType or ""
  local kind = KINDS[name]
  if name == "" then
    errors[#errors + 1] = field.required(path .. ".patchType", "")
    return
  elseif not kind then
    errors[#errors + 1] = field.not_supported(path .. ".patchType", name, PATCHES)
    return
  end
  local own = mutation[kind.own]
  if not own then
    errors[#errors + 1] = field.required(path .. "." .. kind.own, "must be specified when patchType is " .. name)
  else
    rules.validate_expression(own.expression, env, kind.wanted, ("%s.%s.expression"):format(path, kind.own), "", errors)
  end
  if mutation[kind.other] then
    errors[#errors + 1] = field.invalid(path .. "." .. kind.other, "{" .. kind.other .. "}",
      "must not be specified when patchType is " .. name)
  end
end


local function check_spec(object, same_conditions)
  local errors, spec = {}, object.spec
  local envs = expressions.of_policy(spec, true, patch_types.resolve)
  parts.check_spec(spec, envs, same_conditions, true, errors)
  local mutations = spec.mutations or NONE
  if #mutations == 0 then
    errors[#errors + 1] = field.required("spec.mutations", "mutations must contain at least one item")
  end
  for i, mutation in ipairs(mutations) do
    check_mutation(mutation, envs.mutations, ("spec.mutations[%d]"):format(i - 1), errors)
  end
  rules.choice(spec.reinvocationPolicy, REINVOCATIONS, "spec.reinvocationPolicy", errors)
  return errors
end


local function cells(object, now)
  return {
    object.metadata.name, #(object.spec.mutations or NONE), parts.shown_kind(object.spec.paramKind),
    age.of(object, now),
  }
end


local validate = parts.validator(check_spec)

return {
  defaults = parts.defaults, unconditional_update = false,
  validate = validate, validate_update = validate, cells = cells,
}
