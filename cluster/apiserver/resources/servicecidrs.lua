--- ServiceCIDRs: ranges that Services get their addresses from. They are stored; addresses come from the default one.
---
--- Rules: kubernetes/pkg/apis/networking/validation/validation.go (ValidateServiceCIDR),
--- pkg/registry/networking/servicecidr/strategy.go.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local ip = require "cluster.apiserver.resources.ip"
local metadata = require "cluster.apiserver.metadata"
local workload = require "cluster.apiserver.resources.workload"

local PATH, MOST, IMMUTABLE = "spec.cidrs", 2, "field is immutable"
local TWO_ALIKE = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"


local function family(range)
  return ip.family(range:match "^(.*)/" or "")
end


local function validate(object)
  local errors, ranges = {}, object.spec.cidrs or {}
  if #ranges == 0 then
    errors[#errors + 1] = field.required(PATH, "at least one CIDR required")
    return errors
  elseif #ranges > MOST then
    errors[#errors + 1] = check.invalid_text(PATH, check.go_struct { { "CIDRs", ranges } },
      ("may only hold up to %d values"):format(MOST))
    return errors
  end
  for i, range in ipairs(ranges) do
    ip.check_canonical_range(range, ("%s[%d]"):format(PATH, i - 1), errors)
  end
  local first = family(ranges[1])
  if ranges[2] and first and first == family(ranges[2]) then
    errors[#errors + 1] = field.invalid(PATH, ranges, TWO_ALIKE)
  end
  return errors
end


-- The ranges stay; one of the other family may come.
local function validate_update(new, old)
  local errors, ranges, before = {}, new.spec.cidrs or host.json.array {}, old.spec.cidrs or {}
  if #ranges ~= #before and not (#before == 1 and #ranges == MOST) then
    errors[#errors + 1] = field.invalid(PATH, #ranges > 0 and ranges or host.json.null, IMMUTABLE)
    return errors
  end
  for i, range in ipairs(before) do
    if range ~= ranges[i] then
      errors[#errors + 1] = field.invalid(("%s[%d]"):format(PATH, i - 1), ranges[i], IMMUTABLE)
    end
  end
  return #ranges ~= #before and check.append(errors, validate(new)) or errors
end


-- A write of the status changes nothing else.
local function prepare_status(new, old)
  metadata.keep(new.metadata, old.metadata)
  new.spec = old.spec
end


return {
  spec_changed = false,
  prepare_create = function(object)
    object.status = {}
  end,
  prepare_update = workload.keep_status,
  prepare_status = prepare_status,
  validate = validate, validate_update = validate_update,
  cells = function(obj, now)
    return { obj.metadata.name, table.concat(obj.spec.cidrs or {}, ","), age.of(obj, now) }
  end,
}
