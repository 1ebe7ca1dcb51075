--- Volumes of a pod as folders, and their files from ConfigMaps, Secrets and the pod itself. How a container gets to
--- them is the matter of mounts.lua, or of links.lua on a machine without containers.
---
--- Rules: kubernetes/pkg/volume/configmap, secret, projected, downwardapi; volume_linux.go (fsGroup),
--- util/util.go (FsUserFrom); kubernetes/pkg/kubelet/kubelet_pods.go (makeMounts), container/helpers.go
--- (ExpandContainerVolumeMounts).
local atomic_writer = require "cluster.kubelet.atomic_writer"
local empty_dirs = require "cluster.kubelet.empty_dirs"
local env = require "cluster.kubelet.env"
local security_context = require "cluster.kubelet.security_context"

local M = {}

local MODE_DEFAULT, MODE_OF_GROUP, MODE_OF_TOKEN = 420, 288, 384 -- 0644, 0440, 0600
local KINDS = { configMap = "ConfigMap", secret = "Secret" }
local NO_KEY = {
  ConfigMap = "configmap references non-existent config key: ", Secret = "references non-existent secret key: ",
}


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
      return nil, NO_KEY[kind] .. item.key
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


-- True if all containers say the same user, or the pod says it for them: a token is this user's then.
local function has_one_user(pod)
  local common
  for _, list in ipairs { pod.spec.initContainers or {}, pod.spec.containers } do
    for _, container in ipairs(list) do
      local user = security_context.field(pod, container, "runAsUser")
      if not user or common and common ~= user then
        return false
      end
      common = user
    end
  end
  return true
end


local function group_of(pod)
  return (pod.spec.securityContext or {}).fsGroup
end


local function add_token(files, source, run, mode)
  local token, why = run.token(run.pod, source.audience, source.expirationSeconds)
  if not token then
    return nil, why
  end
  local is_private = group_of(run.pod) or has_one_user(run.pod)
  files[source.path] = { text = token, mode = is_private and MODE_OF_TOKEN or mode }
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
    return nil, why
  end
  if group_of(run.pod) then
    for _, file in pairs(files) do
      file.mode = file.mode | MODE_OF_GROUP
    end
  end
  return files
end


-- The run, but it knows an immutable ConfigMap or Secret that the pod has once read, and reads it no more.
local function keep_immutable(place, run)
  local function read(kind, namespace, name)
    local key = kind .. "/" .. name
    local object = place.immutable[key] or run.read(kind, namespace, name)
    if object and object.immutable then
      place.immutable[key] = object
    end
    return object
  end
  return setmetatable({ read = read }, { __index = run })
end


-- A volume as a folder: { folder = its whole path, base = a folder of ours, path = below that, files = those that the
-- kubelet writes: see atomic_writer.lua; nil: none }.
local function folder_in(base, path, folder, files)
  return { base = base, path = path, folder = folder, files = files }
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


-- Where a volume is in the folder of its pod.
local function path_in(folder, volume)
  return ("%s/volumes/%s"):format(folder, volume.name)
end


-- Writes the files that a volume's sources have now. One that has some keeps them where its sources cannot be read.
-- @return table|nil its writer; nil: it has no files; string|nil why they are not those of now
local function written(place, volume, run)
  local writer = place.writers[volume.name] or atomic_writer.new(place.base, path_in(place.path, volume))
  local files, why = files_of(volume, run)
  local ok = files ~= nil
  if ok then
    ok, why = writer:write(files)
  end
  if ok then
    place.writers[volume.name] = writer
    return writer
  end
  return place.writers[volume.name], ("MountVolume.SetUp failed for volume %q : %s"):format(volume.name, why)
end


-- The folder of a volume with what belongs in it: files that it has already are kept as their sources are by
-- M.update. @return table|nil see folder_in, or nil and why not
local function filled(place, volume, run)
  local path, writer = path_in(place.path, volume), place.writers[volume.name]
  local ok, why = writer ~= nil, nil
  if volume.emptyDir then
    ok, why = empty_dirs.make(place.base, path, run.pod)
  elseif not writer then
    writer, why = written(place, volume, run)
    ok = writer ~= nil
  end
  if not ok then
    return nil, why
  end
  return folder_in(place.base, path, path_in(place.folder, volume), writer and writer.files)
end


-- A text with the container's variables in place: each that it names has to be there, and not empty.
local function expanded(text, variables)
  local missing, seen = {}, {}
  local known = setmetatable({}, { __index = function(_, name)
    local value = variables[name] or ""
    if value == "" and not seen[name] then
      seen[name] = true
      missing[#missing + 1] = name
    end
    return value
  end })
  local path = env.expand(text, known)
  if missing[1] then
    table.sort(missing)
    return nil, "missing value for " .. table.concat(missing, ", ")
  end
  return path
end


-- The path in its volume that an entry of volumeMounts names. @return string|nil nil: all of it; or nil and why there
-- is none
local function part_of(entry, variables)
  local part, why = entry.subPath or "", nil
  if (entry.subPathExpr or "") ~= "" then
    part, why = expanded(entry.subPathExpr, variables)
  end
  if not part or part == "" then
    return nil, why
  elseif part:sub(1, 1) == "/" then
    return nil, ("error SubPath `%s` must not be an absolute path"):format(part)
  elseif ("/" .. part .. "/"):find("/../", 1, true) then
    return nil, ("unable to provision SubPath `%s`: must not contain '..'"):format(part)
  end
  return part
end


--- Fills the volumes that a container mounts, and calls fn(mount, number) for each of its volumeMounts.
---   mount = { entry = of volumeMounts, volume =, folder = see folder_in,
---     part = the path in the folder that is mounted; nil: all of it }
--- @param place table the pod's own: see process_runtime.lua  @param run table see pod_worker.lua
--- @param fn function, which returns true, or nil and why not
--- @return true|nil, or nil and why not, of the first that fails
function M.each(place, run, fn)
  local volumes, source = {}, keep_immutable(place, run)
  for _, volume in ipairs(run.pod.spec.volumes or {}) do
    volumes[volume.name] = volume
  end
  for number, entry in ipairs(run.container.volumeMounts or {}) do
    local volume = volumes[entry.name]
    local part, why = part_of(entry, run.variables)
    local folder, ok
    if why then
      return nil, why
    elseif volume.persistentVolumeClaim then
      folder, why = claimed(volume, run)
    else
      folder, why = filled(place, volume, source)
    end
    if folder then
      ok, why = fn({ entry = entry, volume = volume, folder = folder, part = part }, number)
    end
    if not ok then
      return nil, why
    end
  end
  return true
end


-- The names of the volumes that containers of a pod mount: the others stay empty.
local function mounted_names(pod)
  local names = {}
  for _, list in ipairs { pod.spec.initContainers or {}, pod.spec.containers } do
    for _, container in ipairs(list) do
      for _, entry in ipairs(container.volumeMounts or {}) do
        names[entry.name] = true
      end
    end
  end
  return names
end


-- True for a volume with files that the kubelet writes; false where one of its sources cannot be given here, as the
-- status of a container that mounts it says then.
local function has_files(volume)
  for _, source in ipairs(volume.projected and volume.projected.sources or {}) do
    if not (source.configMap or source.secret or source.downwardAPI or source.serviceAccountToken) then
      return false
    end
  end
  return (volume.configMap or volume.secret or volume.downwardAPI or volume.projected) ~= nil
end


-- Why a claim cannot be mounted yet, or nil. One that has a volume which is not ours is told of when it is mounted.
local function problem_of_claim(volume, run)
  local namespace, name = run.pod.metadata.namespace, volume.persistentVolumeClaim.claimName
  local claim = run.read("PersistentVolumeClaim", namespace, name)
  local why
  if not claim then
    why = ("failed to fetch PVC from API server: persistentvolumeclaims %q not found"):format(name)
  elseif (claim.status or {}).phase ~= "Bound" then
    why = "PVC is not bound"
  end
  return why and ("Unable to attach or mount volumes: unmounted volumes=[%s], unattached volumes=[], failed to "
    .. "process volumes=[%s]: error processing PVC %s/%s: %s"):format(volume.name, volume.name, namespace, name, why)
end


--- Gives the volumes that containers of a pod mount the files that their sources have now. One that fails keeps the
--- files that it has, and keeps no other from its own.
--- @param run table { pod =, read =, token =, has_started = }: see pod_worker.lua; before the pod has started, its
---   claims are looked at, too
--- @return table list of texts: why volumes have no files, or not those of now
function M.update(place, run)
  local source, is_mounted, failures = keep_immutable(place, run), mounted_names(run.pod), {}
  for _, volume in ipairs(run.pod.spec.volumes or {}) do
    local _, why
    if is_mounted[volume.name] and has_files(volume) then
      _, why = written(place, volume, source)
    elseif is_mounted[volume.name] and volume.persistentVolumeClaim and not run.has_started then
      why = problem_of_claim(volume, run)
    end
    failures[#failures + 1] = why
  end
  return failures
end


return M
