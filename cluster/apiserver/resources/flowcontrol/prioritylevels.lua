--- PriorityLevelConfigurations. They are stored; requests are not queued here.
---
--- Rules: kubernetes/pkg/apis/flowcontrol/validation/validation.go, pkg/apis/flowcontrol/v1/defaults.go,
--- pkg/registry/flowcontrol/prioritylevelconfiguration/strategy.go.
local age = require "cluster.apiserver.tables.age"
local field = require "cluster.apiserver.field"
local fixed = require "cluster.apiserver.resources.flowcontrol.fixed"
local host = require "cluster.host"
local status_rules = require "cluster.apiserver.resources.flowcontrol.status"

local QUEUES_MAX, HASH_BITS = 10000000, 60
local KEPT_ZERO = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"


local function or_default(value, default)
  if value == nil or value == host.json.null then
    return default
  end
  return value
end


local function defaults(object)
  local exempt, limited = object.spec.exempt, object.spec.limited
  if exempt then
    exempt.nominalConcurrencyShares = or_default(exempt.nominalConcurrencyShares, 0)
    exempt.lendablePercent = or_default(exempt.lendablePercent, 0)
  end
  if limited then
    limited.nominalConcurrencyShares = or_default(limited.nominalConcurrencyShares, 30)
    limited.lendablePercent = or_default(limited.lendablePercent, 0)
    local queuing = limited.limitResponse.queuing
    if queuing then
      queuing.handSize = queuing.handSize ~= 0 and queuing.handSize or 8
      queuing.queues = queuing.queues ~= 0 and queuing.queues or 64
      queuing.queueLengthLimit = queuing.queueLengthLimit ~= 0 and queuing.queueLengthLimit or 50
    end
  end
end


-- @return table|nil an error for what it lends
local function check_shares(level, path, errors)
  local shares, lendable = level.nominalConcurrencyShares, level.lendablePercent
  if shares < 0 then
    errors[#errors + 1] = field.invalid(path .. ".nominalConcurrencyShares", shares, "must be a non-negative integer")
  end
  return (lendable < 0 or lendable > 100)
    and field.invalid(path .. ".lendablePercent", lendable, "must be between 0 and 100, inclusive") or nil
end


local function check_queuing(queuing, path, errors)
  local queues, hand = queuing.queues, queuing.handSize
  local function bad(name, why)
    errors[#errors + 1] = field.invalid(path .. "." .. name, queuing[name], why)
  end
  if queuing.queueLengthLimit <= 0 then
    bad("queueLengthLimit", "must be positive")
  end
  if queues <= 0 then
    bad("queues", "must be positive")
  elseif queues > QUEUES_MAX then
    bad("queues", ("must not be greater than %d"):format(QUEUES_MAX))
  end
  if hand <= 0 then
    bad("handSize", "must be positive")
  elseif hand > queues then
    bad("handSize", ("should not be greater than queues (%d)"):format(queues))
  elseif math.ceil(math.log(queues, 2) * hand) > HASH_BITS then
    bad("handSize", ("required entropy bits of deckSize %d and handSize %d should not be greater than %d"):format(
      queues, hand, HASH_BITS))
  end
end


local function check_response(response, path, errors)
  local queuing = response.queuing
  if response.type == "Reject" then
    if queuing then
      errors[#errors + 1] = field.forbidden(path .. ".queuing",
        "must be nil if limited.limitResponse.type is not Limited")
    end
  elseif response.type == "Queue" then
    if queuing then
      check_queuing(queuing, path .. ".queuing", errors)
    else
      errors[#errors + 1] = field.required(path .. ".queuing",
        "must not be empty if limited.limitResponse.type is Limited")
    end
  elseif response.type == "" then
    errors[#errors + 1] = field.required(path .. ".type", "")
  else
    errors[#errors + 1] = field.not_supported(path .. ".type", response.type, { "Queue", "Reject" })
  end
end


local function check_limited(limited, path, errors)
  local bad = check_shares(limited, path, errors)
  check_response(limited.limitResponse, path .. ".limitResponse", errors)
  errors[#errors + 1] = bad
  local borrowing = limited.borrowingLimitPercent
  if borrowing and borrowing < 0 then
    errors[#errors + 1] = field.invalid(path .. ".borrowingLimitPercent", borrowing,
      "if specified, must be a non-negative integer")
  end
end


local function check_kind(spec, errors)
  local kind = spec.type
  if kind == "Exempt" then
    if spec.limited then
      errors[#errors + 1] = field.forbidden("spec.limited", "must be nil if the type is not Limited")
    end
    if spec.exempt then
      local bad = check_shares(spec.exempt, "spec.exempt", errors)
      errors[#errors + 1] = bad
    end
  elseif kind == "Limited" then
    if spec.exempt then
      errors[#errors + 1] = field.forbidden("spec.exempt", "must be nil if the type is Limited")
    end
    if spec.limited then
      check_limited(spec.limited, "spec.limited", errors)
    else
      errors[#errors + 1] = field.required("spec.limited", "must not be empty when type is Limited")
    end
  elseif kind == "" then
    errors[#errors + 1] = field.required("spec.type", "")
  else
    errors[#errors + 1] = field.not_supported("spec.type", kind, { "Exempt", "Limited" })
  end
end


-- Levels that every server needs may not change, except for spec.exempt of the level "exempt".
local function check_fixed(name, spec, errors)
  if not fixed.mandatory[name] then
    return
  end
  local wanted, actual = fixed.levels[name], host.json.copy(spec)
  if name == "exempt" then
    actual.exempt = wanted.exempt
  end
  if not host.json.equal(wanted, actual) then
    local except = name == "exempt" and " except the 'spec.exempt' field" or ""
    errors[#errors + 1] = field.invalid("spec", nil,
      ("spec of '%s'%s must equal the fixed value"):format(name, except))
  end
end


local function validate(object)
  local errors, spec, name = {}, object.spec, object.metadata.name
  if (object.metadata.annotations or {})[KEPT_ZERO] then
    errors[#errors + 1] = field.forbidden("metadata.annotations", ("annotation '%s' is forbidden"):format(KEPT_ZERO))
  end
  if (name == "exempt") ~= (spec.type == "Exempt") then
    errors[#errors + 1] = field.invalid("spec.type", spec.type, "must be 'Exempt' if and only if `name` is 'exempt'")
  end
  check_kind(spec, errors)
  check_fixed(name, spec, errors)
  return errors
end


local function cells(obj, now)
  local limited = obj.spec.limited
  local queuing = limited and limited.limitResponse.queuing or {}
  return {
    obj.metadata.name, obj.spec.type, limited and limited.nominalConcurrencyShares or "<none>",
    queuing.queues or "<none>", queuing.handSize or "<none>", queuing.queueLengthLimit or "<none>", age.of(obj, now),
  }
end


return {
  defaults = defaults,
  prepare_create = status_rules.clear,
  prepare_update = status_rules.keep,
  prepare_status = status_rules.prepare,
  validate = validate, validate_update = validate, validate_status = status_rules.validate,
  cells = cells,
}
