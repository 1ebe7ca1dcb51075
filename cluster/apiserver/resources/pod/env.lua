--- The variables of containers.
---
--- Rules: kubernetes/pkg/apis/core/validation/validation.go (ValidateEnv, ValidateEnvFrom).
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local names = require "cluster.names"
local references = require "cluster.apiserver.resources.pod.references"

local M = {}

local NONE = {}
local BAD_NAME = "a valid environment variable name must consist only of printable ASCII characters other than '='"
local NO_SOURCE = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or "
  .. "`fileKeyRef`"


local function check_name(name, path, errors)
  if name == "" then
    errors[#errors + 1] = field.required(path, "")
  elseif name:find("[^ -<>-~]") then
    errors[#errors + 1] = field.invalid(path, name, BAD_NAME)
  end
end


local function check_file_key(selector, path, errors)
  for _, name in ipairs { "volumeName", "path", "key" } do
    if (selector[name] or "") == "" then
      errors[#errors + 1] = field.required(path .. "." .. name, "")
    end
  end
end


local SOURCES = {
  { "fieldRef", function(selector, path, errors)
    references.field_ref(selector, references.env_fields, path, errors)
  end },
  { "resourceFieldRef", function(selector, path, errors)
    references.resource_ref(selector, false, path, errors)
  end },
  { "configMapKeyRef", references.key_ref },
  { "secretKeyRef", references.key_ref },
  { "fileKeyRef", check_file_key },
}


local function check_source(variable, path, errors)
  local count = 0
  for _, source in ipairs(SOURCES) do
    local selector = variable.valueFrom[source[1]]
    if selector then
      count = count + 1
      source[2](selector, path .. "." .. source[1], errors)
    end
  end
  local why
  if count == 0 then
    why = NO_SOURCE
  elseif (variable.value or "") ~= "" then
    why = "may not be specified when `value` is not empty"
  elseif count > 1 then
    why = "may not have more than one field specified at a time"
  end
  if why then
    errors[#errors + 1] = field.invalid(path, "", why)
  end
end


local function check_whole(reference, path, errors)
  if (reference.name or "") == "" then
    errors[#errors + 1] = field.required(path .. ".name", "")
  else
    check.each(errors, path .. ".name", reference.name, names.name_is_subdomain(reference.name, true))
  end
end


local function check_from(source, path, list_path, errors)
  if source.prefix then
    check_name(source.prefix, path .. ".prefix", errors)
  end
  local count = 0
  for _, name in ipairs { "configMapRef", "secretRef" } do
    if source[name] then
      count = count + 1
      check_whole(source[name], path .. "." .. name, errors)
    end
  end
  if count == 0 then
    errors[#errors + 1] = field.invalid(list_path, "", "must specify one of: `configMapRef` or `secretRef`")
  elseif count > 1 then
    errors[#errors + 1] = field.invalid(list_path, "", "may not have more than one field specified at a time")
  end
end


--- env and envFrom of a container.
function M.validate(container, path, errors)
  for i, variable in ipairs(container.env or NONE) do
    local at = ("%s.env[%d]"):format(path, i - 1)
    check_name(variable.name, at .. ".name", errors)
    if variable.valueFrom then
      check_source(variable, at .. ".valueFrom", errors)
    end
  end
  for i, source in ipairs(container.envFrom or NONE) do
    check_from(source, ("%s.envFrom[%d]"):format(path, i - 1), path .. ".envFrom", errors)
  end
end


return M
