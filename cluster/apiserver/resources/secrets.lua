--- Secrets.
---
--- Rules: kubernetes/pkg/apis/core/validation/validation.go (ValidateSecret), pkg/registry/core/secret/strategy.go,
--- pkg/apis/core/v1/conversion.go (stringData).
local age = require "cluster.apiserver.tables.age"
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"

local BYTES_MAX = 1024 * 1024


-- Keeps the texts of stringData as bytes; they replace bytes of the same key.
local function take_text(object)
  local text = object.stringData
  object.stringData = nil
  if text then
    object.data = object.data or {}
    for key, value in pairs(text) do
      object.data[key] = host.base64.encode(value)
    end
  end
end


local function defaults(object)
  object.type = object.type or "Opaque"
  take_text(object)
end


local function json_object(bytes)
  local value = host.json.decode(bytes)
  return type(value) == "table" and not host.json.is_array(value)
end


local function check_docker(key)
  return function(data, errors)
    local path = "data[" .. key .. "]"
    local value = data[key]
    if value == nil then
      errors[#errors + 1] = field.required(path, "")
    elseif not json_object(host.base64.decode(value) or "") then
      errors[#errors + 1] = field.invalid(path, "<secret contents redacted>", check.json_complaint(
        host.base64.decode(value) or ""))
    end
  end
end


local function must_have(...)
  local keys = { ... }
  return function(data, errors)
    for _, key in ipairs(keys) do
      if data[key] == nil then
        errors[#errors + 1] = field.required("data[" .. key .. "]", "")
      end
    end
  end
end


local function check_key(data, errors)
  if (data["ssh-privatekey"] or "") == "" then
    errors[#errors + 1] = field.required("data[ssh-privatekey]", "")
  end
end


-- Of user name and password one is enough.
local function check_basic(data, errors)
  if data.username == nil and data.password == nil then
    errors[#errors + 1] = field.required("data[username]", "")
    errors[#errors + 1] = field.required("data[password]", "")
  end
end


local BY_TYPE = {
  ["kubernetes.io/dockercfg"] = check_docker ".dockercfg",
  ["kubernetes.io/dockerconfigjson"] = check_docker ".dockerconfigjson",
  ["kubernetes.io/basic-auth"] = check_basic,
  ["kubernetes.io/ssh-auth"] = check_key,
  ["kubernetes.io/tls"] = must_have("tls.crt", "tls.key"),
}


local function validate(object)
  local errors, data, size = {}, object.data or {}, 0
  for _, key in ipairs(check.sorted_keys(data)) do
    check.config_key(key, "data[" .. key .. "]", errors)
    size = size + #(host.base64.decode(data[key]) or "")
  end
  if size > BYTES_MAX then
    errors[#errors + 1] = field.too_long("data", "", BYTES_MAX)
  end
  if object.type == "kubernetes.io/service-account-token" then
    local annotations = object.metadata.annotations or {}
    if (annotations["kubernetes.io/service-account.name"] or "") == "" then
      errors[#errors + 1] = field.required("metadata.annotations[kubernetes.io/service-account.name]", "")
    end
  elseif BY_TYPE[object.type] then
    BY_TYPE[object.type](data, errors)
  end
  return errors
end


local function validate_update(new, old)
  local errors = {}
  check.immutable_value(new.type, old.type, "type", errors)
  if old.immutable then
    check.stays_immutable(new, errors)
    if not host.json.equal(new.data or {}, old.data or {}) then
      errors[#errors + 1] = field.forbidden("data", "field is immutable when `immutable` is set")
    end
  end
  return check.append(errors, validate(new))
end


-- A type that is left out stays what it was.
local function prepare_update(new, old)
  if not new.type then
    new.type = old.type
  end
end


local function entries_in(map)
  local count = 0
  for _ in pairs(map or {}) do
    count = count + 1
  end
  return count
end


local function cells(obj, now)
  return { obj.metadata.name, obj.type or "", entries_in(obj.data), age.of(obj, now) }
end


return {
  spec_changed = false,
  defaults = defaults,
  prepare_update = prepare_update,
  validate = validate,
  validate_update = validate_update,
  field_names = { type = true },
  fields = function(object)
    return { type = object.type or "" }
  end,
  cells = cells,
}
