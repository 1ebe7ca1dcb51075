--- The rules for claims of volumes, also inside templates.
---
--- Rules: kubernetes/pkg/apis/core/validation/validation.go (ValidatePersistentVolumeClaimSpec).
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local names = require "cluster.names"
local quantity = require "cluster.quantity"
local selectors = require "cluster.apiserver.resources.selectors"

local M = {}

local MODES = { "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod" }
local ZERO = quantity.of(0)


--- Ways of access to a volume.
function M.check_modes(modes, path, errors)
  local alone, others = false, false
  for _, mode in ipairs(modes) do
    local before = #errors
    check.choice(mode, MODES, path, errors)
    alone = alone or mode == "ReadWriteOncePod"
    others = others or #errors == before and mode ~= "ReadWriteOncePod"
  end
  if alone and others then
    errors[#errors + 1] = field.forbidden(path, "may not use ReadWriteOncePod with other access modes")
  end
end


--- An amount of storage.
function M.check_size(text, path, errors)
  local amount = text and quantity.parse(text)
  if not text then
    errors[#errors + 1] = field.required(path, "")
  elseif amount and quantity.compare(amount, ZERO) <= 0 then
    errors[#errors + 1] = field.invalid(path, text, "must be greater than zero")
  end
end


--- The spec of a claim.
function M.validate(spec, path, errors)
  local modes = spec.accessModes or {}
  if #modes == 0 then
    errors[#errors + 1] = field.required(path .. ".accessModes", "at least 1 access mode is required")
  end
  selectors.validate(spec.selector, path .. ".selector", errors)
  M.check_modes(modes, path .. ".accessModes", errors)
  M.check_size((spec.resources.requests or {}).storage, path .. ".resources[storage]", errors)
  if (spec.storageClassName or "") ~= "" then
    check.each(errors, path .. ".storageClassName", spec.storageClassName, names.subdomain(spec.storageClassName))
  end
  check.one_of(spec.volumeMode, { "Block", "Filesystem" }, path .. ".volumeMode", errors)
end


return M
