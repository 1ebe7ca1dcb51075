--- The warning for clients of a deprecated version.
---
--- Rules: apiextensions-apiserver/pkg/apiserver/customresource_handler.go (defaultDeprecationWarning),
--- apimachinery/pkg/version/helpers.go (CompareKubeAwareVersionStrings).
local M = {}

local STAGES = { alpha = 1, beta = 2, [""] = 3 }


-- "v1beta2" as stage, major and minor; nil for names that are no versions of that form.
local function parse(name)
  local major, stage, minor = name:match "^v(%d+)(%l*)(%d*)$"
  if not major or not STAGES[stage] or (stage == "") ~= (minor == "") then
    return nil
  end
  return STAGES[stage], math.tointeger(tonumber(major)), math.tointeger(tonumber(minor)) or 0
end


--- Returns true if version `a` comes before `b`, as servers order them: v1alpha1, v1beta1, v1, v2; other names come
--- before all these, in reverse alphabetical order.
function M.before(a, b)
  local a_stage, a_major, a_minor = parse(a)
  local b_stage, b_major, b_minor = parse(b)
  if not a_stage or not b_stage then
    return b_stage ~= nil and not a_stage or (not a_stage and not b_stage and a > b)
  elseif a_stage ~= b_stage then
    return a_stage < b_stage
  elseif a_major ~= b_major then
    return a_major < b_major
  end
  return a_minor < b_minor
end


--- The warning for clients of a version of a CRD, nil when it is not deprecated.
function M.warning(crd, version)
  if not version.deprecated then
    return nil
  elseif version.deprecationWarning then
    return version.deprecationWarning
  end
  local spec, best = crd.spec, nil
  for _, other in ipairs(spec.versions) do
    if other.served and not other.deprecated and M.before(version.name, other.name)
      and (not best or M.before(best, other.name)) then
      best = other.name
    end
  end
  local message = ("%s/%s %s is deprecated"):format(spec.group, version.name, spec.names.kind)
  return best and ("%s; use %s/%s %s"):format(message, spec.group, best, spec.names.kind) or message
end


return M
