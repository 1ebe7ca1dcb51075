--- ConfigMaps.
---
--- Rules: kubernetes/pkg/apis/core/validation/validation.go (ValidateConfigMap), pkg/registry/core/configmap.
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"

local BYTES_MAX = 1024 * 1024
local NONE = {}


-- Adds what is wrong with the keys of `map`; returns the bytes of its values.
local function check_keys(map, name, other, errors)
  local size = 0
  for _, key in ipairs(check.sorted_keys(map)) do
    local path = name .. "[" .. key .. "]"
    check.config_key(key, path, errors)
    if other and other[key] then
      errors[#errors + 1] = field.invalid(path, key, "duplicate of key present in binaryData")
    end
    size = size + #(other and map[key] or host.base64.decode(map[key]) or "")
  end
  return size
end


local function validate(object)
  local data, binary = object.data, object.binaryData
  local errors = {}
  local size = (data and check_keys(data, "data", binary or NONE, errors) or 0)
    + (binary and check_keys(binary, "binaryData", nil, errors) or 0)
  if size > BYTES_MAX then
    errors[#errors + 1] = field.too_long("[]", "", BYTES_MAX)
  end
  return errors
end


local function validate_update(new, old)
  local errors = {}
  if old.immutable then
    check.stays_immutable(new, errors)
    for _, name in ipairs { "data", "binaryData" } do
      if not host.json.equal(new[name] or NONE, old[name] or NONE) then
        errors[#errors + 1] = field.forbidden(name, "field is immutable when `immutable` is set")
      end
    end
  end
  return check.append(errors, validate(new))
end


local function entries_in(map)
  local count = 0
  for _ in pairs(map or {}) do
    count = count + 1
  end
  return count
end


local function cells(obj, now)
  return { obj.metadata.name, entries_in(obj.data) + entries_in(obj.binaryData), age.of(obj, now) }
end


return {
  spec_changed = false, validate = validate, validate_update = validate_update,
  cells = cells,
}
