--- The spec of a CRD.
---
--- Rules and wordings: apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go
--- (validateCustomResourceDefinitionSpec).
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local internal = require "cluster.apiserver.crd.internal"
local names = require "cluster.names"
local version_rules = require "cluster.apiserver.crd.version"
local webhook_client_config = require "cluster.apiserver.webhook_client_config"

local M = {}

local WARNING_MAX = 256


local function add(errors, err)
  errors[#errors + 1] = err
end


local function joined(path, value, messages, errors, before)
  if messages then
    add(errors, field.invalid(path, value, (before or "") .. table.concat(messages, ",")))
  end
end


local function check_choice(value, path, choices, errors)
  if (value or "") == "" then
    add(errors, field.required(path, ""))
    return
  end
  for _, choice in ipairs(choices) do
    if choice == value then
      return
    end
  end
  add(errors, field.not_supported(path, value, choices))
end


local function check_group(group, errors)
  if (group or "") == "" then
    add(errors, field.required("spec.group", ""))
    return
  end
  local messages = names.subdomain(group)
  joined("spec.group", group, messages, errors)
  if not messages and not group:find(".", 1, true) then
    add(errors, field.invalid("spec.group", group, "should be a domain with at least one dot"))
  end
end


local MIXED = "may have mixed case, but should otherwise match: "

--- The names of a CRD, in its spec or its status.
function M.names(spec_names, path, errors)
  local function check(key, mixed)
    local value = spec_names[key] or ""
    if value ~= "" then
      joined(path .. "." .. key, value, names.label_1035(mixed and value:lower() or value), errors, mixed)
    end
  end
  check "plural"
  check "singular"
  check("kind", MIXED)
  check("listKind", MIXED)
  for i, short in ipairs(spec_names.shortNames or {}) do
    joined(("%s.shortNames[%d]"):format(path, i - 1), short, names.label_1035(short), errors)
  end
  if (spec_names.kind or "") ~= "" and spec_names.kind == spec_names.listKind then
    add(errors, field.invalid(path .. ".listKind", spec_names.listKind, "kind and listKind may not be the same"))
  end
  for i, category in ipairs(spec_names.categories or {}) do
    joined(("%s.categories[%d]"):format(path, i - 1), category, names.label_1035(category), errors)
  end
end


local function check_deprecation(version, path, errors)
  local warning = version.deprecationWarning
  if warning == nil then
    return
  end
  path = path .. ".deprecationWarning"
  if not version.deprecated then
    add(errors, field.invalid(path, warning, "can only be set for deprecated versions"))
    return
  end
  if #warning > WARNING_MAX then
    add(errors, field.invalid(path, warning, "must be <= 256 characters long"))
  end
  if warning == "" then
    add(errors, field.invalid(path, warning, "must not be an empty string"))
  end
  local control = warning:find "%c"
  if control then
    add(errors, field.invalid(path, warning,
      ("must only contain printable UTF-8 characters; non-printable character found at index %d"):format(control - 1)))
  end
end


local function schema_of(version)
  return version.schema and version.schema.openAPIV3Schema
end


-- The parts of one version that it has for itself, or (`shared`) of all of them.
-- @param known table { has_status =, unchanged = } of the version
local function check_parts(version, path, schema_path, has, known, errors)
  local schema = schema_of(version)
  if has.schema and schema then
    version_rules.schema(schema, schema_path .. ".openAPIV3Schema", known.has_status, known.unchanged, errors)
  end
  if has.subresources and version.subresources then
    version_rules.subresources(version.subresources, path .. ".subresources", errors)
  end
  if has.additionalPrinterColumns then
    version_rules.columns(version.additionalPrinterColumns or {}, path .. ".additionalPrinterColumns", errors)
  end
  if has.selectableFields and version.selectableFields and schema then
    version_rules.selectable(version.selectableFields, schema, path .. ".selectableFields", errors)
  end
end


local function others(shared)
  local set = {}
  for key, value in pairs(shared) do
    set[key] = not value
  end
  return set
end


-- True if the version of that name had this schema before.
local function is_unchanged(version, old)
  for _, before in ipairs(old and old.versions or {}) do
    if before.name == version.name then
      return host.json.equal(schema_of(before) or host.json.null, schema_of(version) or host.json.null)
    end
  end
  return false
end


local function check_versions(versions, old, shared, errors)
  local own = others(shared)
  for i, version in ipairs(versions) do
    local path = ("spec.versions[%d]"):format(i - 1)
    joined(path .. ".name", version.name, names.label_1035(version.name or ""), errors)
    check_deprecation(version, path, errors)
    local has_status = version.subresources ~= nil and version.subresources.status ~= nil
    local known = { has_status = has_status, unchanged = is_unchanged(version, old) }
    check_parts(version, path, path .. ".schema", own, known, errors)
  end
end


local function check_flags(versions, errors)
  local seen, unique, storages = {}, true, 0
  for _, version in ipairs(versions or {}) do
    unique = unique and not seen[version.name]
    seen[version.name] = true
    storages = storages + (version.storage and 1 or 0)
  end
  local function broken(words)
    add(errors, field.invalid("spec.versions", nil, internal.versions_text(versions) .. ": " .. words))
  end
  if not unique then
    broken "must contain unique version names"
  end
  if storages ~= 1 then
    broken "must have exactly one version marked as storage version"
  end
end


local function check_schemas_there(versions, errors)
  for i, version in ipairs(versions) do
    if not schema_of(version) then
      add(errors, field.required(("spec.versions[%d].schema.openAPIV3Schema"):format(i - 1), ""))
    end
  end
end


local function check_required_names(spec_names, errors)
  for _, key in ipairs { "plural", "singular", "kind", "listKind" } do
    if (spec_names[key] or "") == "" then
      add(errors, field.required("spec.names." .. key, ""))
    end
  end
end


local function has_known_review(versions)
  for _, version in ipairs(versions) do
    if version == "v1" or version == "v1beta1" then
      return true
    end
  end
  return false
end


local function review_versions(conversion)
  return conversion and conversion.webhook and conversion.webhook.conversionReviewVersions or {}
end


local function check_review_versions(versions, old, path, errors)
  local seen = {}
  if #versions == 0 then
    add(errors, field.required(path, ""))
    return
  end
  for i, version in ipairs(versions) do
    local at = ("%s[%d]"):format(path, i - 1)
    for _, message in ipairs(not seen[version] and names.label_1035(version) or {}) do
      add(errors, field.invalid(at, version, message))
    end
    if seen[version] then
      add(errors, field.invalid(at, version, "duplicate version"))
    end
    seen[version] = true
  end
  if not has_known_review(versions) and (#old == 0 or has_known_review(old)) then
    add(errors, field.invalid(path, versions, "must include at least one of v1, v1beta1"))
  end
end


-- Checks spec.conversion. @param old table|nil the one before
local function check_conversion(conversion, old, errors)
  check_choice(conversion.strategy, "spec.conversion.strategy", { "None", "Webhook" }, errors)
  local webhook, is_called = conversion.webhook or {}, conversion.strategy == "Webhook"
  local config, versions = webhook.clientConfig, review_versions(conversion)
  if is_called and config then
    webhook_client_config.validate(config, "spec.conversion.webhookClientConfig", errors)
  elseif is_called then
    add(errors, field.required("spec.conversion.webhookClientConfig", "required when strategy is set to Webhook"))
  elseif config then
    add(errors, field.forbidden("spec.conversion.webhookClientConfig",
      "should not be set when strategy is not set to Webhook"))
  end
  if is_called then
    check_review_versions(versions, review_versions(old), "spec.conversion.conversionReviewVersions", errors)
  elseif #versions > 0 then
    add(errors, field.forbidden("spec.conversion.conversionReviewVersions",
      "should not be set when strategy is not set to Webhook"))
  end
end


local function any_status(versions)
  for _, version in ipairs(versions) do
    if version.subresources and version.subresources.status then
      return true
    end
  end
  return false
end


--- Checks a spec. @param old table|nil the spec that it follows  @return table list of field errors
function M.check(spec, old)
  local errors = {}
  local versions = type(spec.versions) == "table" and spec.versions or {}
  local shared, first = internal.shared(versions), versions[1]
  check_group(spec.group, errors)
  check_choice(spec.scope, "spec.scope", { "Cluster", "Namespaced" }, errors)
  check_schemas_there(versions, errors)
  check_versions(versions, old, shared, errors)
  check_flags(spec.versions ~= host.json.null and spec.versions or nil, errors)
  if first then
    joined("spec.version", first.name, names.label_1035(first.name or ""), errors)
  end
  check_required_names(spec.names, errors)
  M.names(spec.names, "spec.names", errors)
  if first then
    local known = { has_status = any_status(versions), unchanged = is_unchanged(first, old) }
    check_parts(first, "spec", "spec.validation", shared, known, errors)
  end
  check_conversion(spec.conversion or { strategy = "None" }, old and old.conversion, errors)
  return errors
end


return M
