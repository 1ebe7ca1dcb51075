--- CSIDrivers.
---
--- Rules: kubernetes/pkg/apis/storage/validation/validation.go (ValidateCSIDriver), pkg/apis/storage/v1/defaults.go,
--- pkg/registry/storage/csidriver/strategy.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"

local GROUP_POLICIES = { "File", "None", "ReadWriteOnceWithFSType" }
local MODES = { "Persistent", "Ephemeral" }
local PERIOD_MIN, TOKEN_MIN, TOKEN_MAX = 10, 600, 1 << 32
local LOGGED = "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent "
  .. "possible logging of tokens in volume attributes"

local DEFAULTS = {
  attachRequired = true, podInfoOnMount = false, storageCapacity = false, requiresRepublish = false,
  seLinuxMount = false, fsGroupPolicy = "ReadWriteOnceWithFSType",
}


local function defaults(object)
  local spec = object.spec
  for name, value in pairs(DEFAULTS) do
    if spec[name] == nil then
      spec[name] = value
    end
  end
  spec.volumeLifecycleModes = spec.volumeLifecycleModes or host.json.array { "Persistent" }
end


-- Drops a field whose feature gate is off.
local function prepare(object)
  object.spec.preventPodSchedulingIfMissing = nil
end


local function prepare_create(object)
  prepare(object)
  object.metadata.generation = nil
end


local function check_tokens(requests, errors)
  local seen = {}
  for i, request in ipairs(requests) do
    local path, seconds = ("spec.tokenRequests[%d]"):format(i - 1), request.expirationSeconds
    if seen[request.audience] then
      errors[#errors + 1] = field.duplicate(path .. ".audience", request.audience)
    elseif seconds and seconds < TOKEN_MIN then
      errors[#errors + 1] = field.invalid(path .. ".expirationSeconds", seconds,
        "may not specify a duration less than 10 minutes")
    elseif seconds and seconds > TOKEN_MAX then
      errors[#errors + 1] = field.invalid(path .. ".expirationSeconds", seconds,
        "may not specify a duration larger than 2^32 seconds")
    end
    seen[request.audience] = true
  end
end


local function validate(object)
  local errors, spec = {}, object.spec
  local requests, in_secrets = spec.tokenRequests or {}, spec.serviceAccountTokenInSecrets
  check.choice(spec.fsGroupPolicy, GROUP_POLICIES, "spec.fsGroupPolicy", errors)
  check_tokens(requests, errors)
  for _, mode in ipairs(spec.volumeLifecycleModes) do
    check.choice(mode, MODES, "spec.volumeLifecycleModes", errors)
  end
  local period = spec.nodeAllocatableUpdatePeriodSeconds
  if period and period < PERIOD_MIN then
    errors[#errors + 1] = field.invalid("spec.nodeAllocatableUpdatePeriodSeconds", period,
      "must be greater than or equal to 10 seconds")
  end
  if in_secrets ~= nil and #requests == 0 then
    errors[#errors + 1] = field.invalid("spec.serviceAccountTokenInSecrets", in_secrets,
      "serviceAccountTokenInSecrets is set but no tokenRequests are specified")
  end
  return errors
end


local function validate_update(new, old)
  local errors = validate(new)
  check.immutable_value(new.spec.attachRequired, old.spec.attachRequired, "spec.attachedRequired", errors)
  check.immutable_value(new.spec.volumeLifecycleModes, old.spec.volumeLifecycleModes, "spec.volumeLifecycleModes",
    errors)
  return errors
end


local function warnings(object, old)
  local spec = object.spec
  local changed = not old or not host.json.equal(spec.tokenRequests or {}, old.spec.tokenRequests or {})
  if changed and #(spec.tokenRequests or {}) > 0 and spec.serviceAccountTokenInSecrets == nil then
    return { LOGGED }
  end
  return {}
end


local function cells(obj, now)
  local spec, audiences = obj.spec, {}
  for i, request in ipairs(spec.tokenRequests or {}) do
    audiences[i] = request.audience
  end
  local modes = table.concat(spec.volumeLifecycleModes or {}, ",")
  return {
    obj.metadata.name, spec.attachRequired ~= false, spec.podInfoOnMount or false, spec.storageCapacity or false,
    spec.tokenRequests and table.concat(audiences, ",") or "<unset>", spec.requiresRepublish or false,
    modes ~= "" and modes or "<none>", age.of(obj, now),
  }
end


return {
  returns_deleted = true,
  unconditional_update = false,
  defaults = defaults,
  prepare_create = prepare_create, prepare_update = prepare,
  validate = validate, validate_update = validate_update,
  warnings = warnings,
  cells = cells,
}
