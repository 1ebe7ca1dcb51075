--- Volumes of a pod as folders, and their files from ConfigMaps, Secrets and the pod itself. How a container gets to
--- them is the matter of mounts.lua, or of links.lua on a machine without containers.
---
--- Rules: kubernetes/pkg/volume/configmap, secret, projected, downwardapi.
local env = require "cluster.kubelet.env"

local M = {}

local MODE_DEFAULT = 420 -- 0644
local KINDS = { configMap = "ConfigMap", secret = "Secret" }

-- The API server makes tokens of an hour last a year, so that nobody has to look for a new one.
local TOKEN_SECONDS = 365 * 24 * 3600


-- Adds the keys of a ConfigMap or Secret to `files`: all, or those of `items`. @return true, or nil and why not
local function add_data(files, kind, name, source, run, mode)
  local data, why = env.data_of(run.read, kind, run.pod.metadata.namespace, name, true)
  if not data then
    return source.optional or nil, why
  end
  if not source.items then
    for key, value in pairs(data) do
      files[key] = { text = value, mode = mode }
    end
    return true
  end
  for _, item in ipairs(source.items) do
    if data[item.key] then
      files[item.path] = { text = data[item.key], mode = item.mode or mode }
    elseif not source.optional then
      return nil, ("references non-existent config key: %s"):format(item.key)
    end
  end
  return true
end


local function add_fields(files, source, run, mode)
  for _, item in ipairs(source.items or {}) do
    local text, why
    if item.resourceFieldRef then
      text, why = env.resource_text(run.pod, nil, item.resourceFieldRef, run.read)
    else
      text = env.field_text(run.pod, item.fieldRef.fieldPath)
    end
    if not text then
      return nil, ("downwardAPI item %s: %s"):format(item.path, why or "what it asks for is not known here")
    end
    files[item.path] = { text = text, mode = item.mode or mode }
  end
  return true
end


local function add_token(files, source, run, mode)
  local token, why = run.token(run.pod, source.audience, math.max(source.expirationSeconds or 0, TOKEN_SECONDS))
  if not token then
    return nil, why
  end
  files[source.path] = { text = token, mode = mode }
  return true
end


local function add_projected(files, projected, run, mode)
  for _, source in ipairs(projected.sources or {}) do
    local ok, why
    if source.serviceAccountToken then
      ok, why = add_token(files, source.serviceAccountToken, run, mode)
    elseif source.downwardAPI then
      ok, why = add_fields(files, source.downwardAPI, run, mode)
    elseif source.configMap or source.secret then
      local name = source.configMap and "configMap" or "secret"
      ok, why = add_data(files, KINDS[name], source[name].name, source[name], run, mode)
    else
      why = "a source of a projected volume that cannot be given here"
    end
    if not ok then
      return nil, why
    end
  end
  return true
end


-- The files of a volume: path → { text =, mode = }. @return table, or nil and why not
local function files_of(volume, run)
  local files, ok, why = {}, true, nil
  if volume.configMap then
    ok, why = add_data(files, "ConfigMap", volume.configMap.name, volume.configMap, run,
      volume.configMap.defaultMode or MODE_DEFAULT)
  elseif volume.secret then
    ok, why = add_data(files, "Secret", volume.secret.secretName, volume.secret, run,
      volume.secret.defaultMode or MODE_DEFAULT)
  elseif volume.downwardAPI then
    ok, why = add_fields(files, volume.downwardAPI, run, volume.downwardAPI.defaultMode or MODE_DEFAULT)
  elseif volume.projected then
    ok, why = add_projected(files, volume.projected, run, volume.projected.defaultMode or MODE_DEFAULT)
  end
  if not ok then
    return nil, ("MountVolume.SetUp failed for volume %q : %s"):format(volume.name, why)
  end
  return files
end


-- The first step that fails ends it. @param path string below `base`  @return true, or nil and why not
local function write_all(base, path, files)
  local ok, why = base:make_folder(path)
  local names = {}
  for name in pairs(files) do
    names[#names + 1] = name
  end
  table.sort(names)
  for _, name in ipairs(names) do
    local above = name:match "^(.*)/[^/]*$"
    if ok and above then
      ok, why = base:make_folder(path .. "/" .. above)
    end
    if ok then
      -- The file may be there from a run before, and not writable.
      base:unlink(path .. "/" .. name)
      ok, why = base:write(path .. "/" .. name, files[name].text, files[name].mode)
    end
  end
  return ok, why
end


-- A volume as a folder: { folder = its whole path, base = a folder of ours, path = below that }.
local function folder_in(base, path, folder)
  return { base = base, path = path, folder = folder }
end


-- The folder of a claim, which outlives the pod. A path that somebody wrote into a PersistentVolume is no better than
-- one in a pod: it is not mounted. @return table|nil see folder_in, or nil and why there is none
local function claimed(volume, run)
  local named, namespace = volume.persistentVolumeClaim, run.pod.metadata.namespace
  local claim = run.read("PersistentVolumeClaim", namespace, named.claimName)
  local bound = claim and claim.spec.volumeName and run.read("PersistentVolume", nil, claim.spec.volumeName)
  if not bound then
    return nil, ("persistentvolumeclaim %q has no volume"):format(named.claimName)
  elseif not (run.claim_folders and run.claim_folders:is_ours(bound)) then
    return nil, ("persistentvolumeclaim %q: its volume %q was not made here; only volumes that claims get here are "
      .. "mounted"):format(named.claimName, bound.metadata.name)
  end
  local name = bound.metadata.name
  local ok, why = run.claim_folders:ensure(name)
  return ok and folder_in(run.claim_folders.base, name, run.claim_folders.path .. "/" .. name) or nil, why
end


-- The folder of a volume with what belongs in it. @return table|nil see folder_in, or nil and why not
local function filled(place, volume, run)
  local files, why = files_of(volume, run)
  local ok, path = files ~= nil, ("%s/volumes/%s"):format(place.path, volume.name)
  if ok then
    ok, why = write_all(place.base, path, files)
  end
  return ok and folder_in(place.base, path, ("%s/volumes/%s"):format(place.folder, volume.name)) or nil, why
end


--- Fills the volumes that a container mounts, and calls fn(entry, volume, place of it) for each of its volumeMounts.
--- @param place table the pod's own: see process_runtime.lua  @param run table see pod_worker.lua
--- @param fn function, which returns true, or nil and why not
--- @return true|nil, or nil and why not, of the first that fails
function M.each(place, run, fn)
  local volumes = {}
  for _, volume in ipairs(run.pod.spec.volumes or {}) do
    volumes[volume.name] = volume
  end
  for _, entry in ipairs(run.container.volumeMounts or {}) do
    local volume = volumes[entry.name]
    local folder, why, ok
    if volume.persistentVolumeClaim then
      folder, why = claimed(volume, run)
    else
      folder, why = filled(place, volume, run)
    end
    if folder then
      ok, why = fn(entry, volume, folder)
    end
    if not ok then
      return nil, why
    end
  end
  return true
end


return M
