--- The volumes of a pod.
---
--- Rules: kubernetes/pkg/apis/core/validation/validation.go (ValidateVolumes, validateVolumeSource).
local check = require "cluster.apiserver.resources.check"
local claim = require "cluster.apiserver.resources.claim"
local field = require "cluster.apiserver.field"
local names = require "cluster.names"
local paths = require "cluster.apiserver.resources.pod.paths"
local quantity = require "cluster.quantity"
local references = require "cluster.apiserver.resources.pod.references"

local M = {}

local NONE = {}
local ZERO = quantity.of(0)
local HOST_PATH_TYPES = {
  "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
}
local TOKEN_SECONDS_MIN, TOKEN_SECONDS_MAX = 600, 1 << 32


local function check_item(item, path, errors)
  if item.key == "" then
    errors[#errors + 1] = field.required(path .. ".key", "")
  end
  if item.path == "" then
    errors[#errors + 1] = field.required(path .. ".path", "")
  end
  paths.not_reserved(item.path, path .. ".path", errors)
  paths.mode(item.mode, path .. ".mode", errors)
end


local function check_keys(source, name, path, errors)
  if (source[name] or "") == "" then
    errors[#errors + 1] = field.required(path .. "." .. name, "")
  end
  paths.mode(source.defaultMode, path .. ".defaultMode", errors)
  for i, item in ipairs(source.items or NONE) do
    check_item(item, ("%s.items[%d]"):format(path, i - 1), errors)
  end
end


local function check_downward_file(file, path, errors)
  if file.path == "" then
    errors[#errors + 1] = field.required(path .. ".path", "")
  end
  paths.not_reserved(file.path, path .. ".path", errors)
  if file.fieldRef then
    references.field_ref(file.fieldRef, references.file_fields, path .. ".fieldRef", errors)
    if file.resourceFieldRef then
      errors[#errors + 1] = field.invalid(path, "resource",
        "fieldRef and resourceFieldRef can not be specified simultaneously")
    end
  elseif file.resourceFieldRef then
    references.resource_ref(file.resourceFieldRef, true, path .. ".resourceFieldRef", errors)
  else
    errors[#errors + 1] = field.required(path, "one of fieldRef and resourceFieldRef is required")
  end
  paths.mode(file.mode, path .. ".mode", errors)
end


local function check_token(token, path, errors, volume_path)
  local seconds = token.expirationSeconds
  if seconds < TOKEN_SECONDS_MIN then
    errors[#errors + 1] = field.invalid(path .. ".expirationSeconds", seconds,
      "may not specify a duration less than 10 minutes")
  elseif seconds > TOKEN_SECONDS_MAX then
    errors[#errors + 1] = field.invalid(path .. ".expirationSeconds", seconds,
      "may not specify a duration larger than 2^32 seconds")
  end
  if token.path == "" then
    errors[#errors + 1] = field.required(volume_path .. ".path", "")
  else
    paths.not_reserved(token.path, volume_path .. ".path", errors)
  end
end


local PROJECTED = {
  { "secret", function(part, path, errors)
    check_keys(part, "name", path, errors)
  end },
  { "configMap", function(part, path, errors)
    check_keys(part, "name", path, errors)
  end },
  { "downwardAPI", function(part, path, errors)
    for _, file in ipairs(part.items or NONE) do
      check_downward_file(file, path, errors)
    end
  end },
  { "serviceAccountToken", check_token },
  { "clusterTrustBundle", function() end },
  { "podCertificate", function() end },
}


-- Files of all parts stand in one folder.
local function check_file_names(part, seen, path, errors)
  for _, name in ipairs { "secret", "configMap", "downwardAPI" } do
    for _, item in ipairs((part[name] or NONE).items or NONE) do
      if item.path ~= "" and seen[item.path] then
        errors[#errors + 1] = field.invalid(path, part[name].name or item.path, "conflicting duplicate paths")
      end
      seen[item.path] = true
    end
  end
end


local function check_projected(source, path, errors)
  paths.mode(source.defaultMode, path .. ".defaultMode", errors)
  local seen = {}
  for i, part in ipairs(check.list(source.sources)) do
    local at, count = ("%s.sources[%d]"):format(path, i - 1), 0
    for _, kind in ipairs(PROJECTED) do
      if part[kind[1]] then
        count = count + 1
        kind[2](part[kind[1]], at .. "." .. kind[1], errors, path)
      end
    end
    check_file_names(part, seen, path, errors)
    if count > 1 then
      errors[#errors + 1] = field.forbidden(at, "may not specify more than 1 volume type per source")
    end
  end
end


local function needs(...)
  local wanted = { ... }
  return function(source, path, errors)
    for _, name in ipairs(wanted) do
      if (source[name] or "") == "" then
        errors[#errors + 1] = field.required(path .. "." .. name, "")
      end
    end
  end
end


local function check_host_path(source, path, errors)
  if source.path == "" then
    errors[#errors + 1] = field.required(path .. ".path", "")
    return
  end
  paths.no_backsteps(source.path, path .. ".path", errors)
  check.one_of(source.type, HOST_PATH_TYPES, path .. ".type", errors)
end


local function check_nfs(source, path, errors)
  needs("server", "path")(source, path, errors)
  if source.path:sub(1, 1) ~= "/" then
    errors[#errors + 1] = field.invalid(path .. ".path", source.path, "must be an absolute path")
  end
end


local function check_empty(source, path, errors)
  local size = source.sizeLimit and quantity.parse(source.sizeLimit)
  if size and quantity.compare(size, ZERO) < 0 then
    errors[#errors + 1] = field.forbidden(path .. ".sizeLimit", "SizeLimit field must be a valid resource quantity")
  end
end


-- Sources that a pod here may have, in the order in which they are looked at; of several the first counts.
local SOURCES = {
  { "emptyDir", check_empty },
  { "hostPath", check_host_path },
  { "gitRepo", needs "repository" },
  { "secret", function(source, path, errors)
    check_keys(source, "secretName", path, errors)
  end },
  { "nfs", check_nfs },
  { "persistentVolumeClaim", needs "claimName" },
  { "configMap", function(source, path, errors)
    check_keys(source, "name", path, errors)
  end },
  { "downwardAPI", function(source, path, errors)
    paths.mode(source.defaultMode, path .. ".defaultMode", errors)
    for _, file in ipairs(source.items or NONE) do
      check_downward_file(file, path, errors)
    end
  end },
  { "projected", check_projected },
  { "csi", needs "driver" },
  { "ephemeral", function(source, path, errors)
    local template = source.volumeClaimTemplate
    if not template then
      errors[#errors + 1] = field.required(path .. ".volumeClaimTemplate", "")
    else
      claim.validate(template.spec, path .. ".volumeClaimTemplate.spec", errors)
    end
  end },
}


local function check_sources(volume, path, errors)
  local found = false
  for _, source in ipairs(SOURCES) do
    local name = source[1]
    if volume[name] and found then
      errors[#errors + 1] = field.forbidden(path .. "." .. name, "may not specify more than 1 volume type")
    elseif volume[name] then
      found = true
      source[2](volume[name], path .. "." .. name, errors)
    end
  end
end


--- Checks the volumes of a pod. @return table name → volume, of the good ones
function M.validate(volumes, path, errors)
  local good = {}
  for i, volume in ipairs(volumes or NONE) do
    local at, before = ("%s[%d]"):format(path, i - 1), #errors
    check_sources(volume, at, errors)
    if volume.name == "" then
      errors[#errors + 1] = field.required(at .. ".name", "")
    else
      check.each(errors, at .. ".name", volume.name, names.label(volume.name))
    end
    if good[volume.name] then
      errors[#errors + 1] = field.duplicate(at .. ".name", volume.name)
    end
    if #errors == before then
      good[volume.name] = volume
    end
  end
  return good
end


return M
