--- Plans the user, the root and the mounts of a container. cluster/host/process_root.c makes them.
---
--- Rules: kubernetes/pkg/kubelet/kubelet_pods.go (makeMounts, ensureHostsFile, GeneratePodHostNameAndDomain),
--- util/util.go (GetNodenameForKernel), kuberuntime/kuberuntime_container.go (makeMounts: the file of
--- terminationMessagePath); containerd, internal/cri/server (containerMounts: files in /etc that no volume has).
local clean_path = require "cluster.apiserver.clean_path"
local passwd = require "cluster.kubelet.passwd"
local process = require "cluster.process"
local resolv_conf = require "cluster.apiserver.network.resolv_conf"
local security_context = require "cluster.kubelet.security_context"
local volumes = require "cluster.kubelet.volumes"

local M = {}

local HOSTNAME_MAX, FULL_NAME_MAX = 63, 64
local ANYBODY = 65532 -- for an image that must not run as root and does not say as whom
local HOME = "/root"
local ALL_READ, ALL_WRITE = 420, 438 -- 0644, 0666
local READ_ONLY = { "configMap", "secret", "projected", "downwardAPI" } -- whatever the mount says


-- @return string name of a pod's host, string|nil domain that the name is in
local function names_of(pod)
  local spec = pod.spec
  local name = (spec.hostnameOverride or spec.hostname or pod.metadata.name):sub(1, HOSTNAME_MAX):gsub("[-.]+$", "")
  if spec.hostnameOverride or (spec.subdomain or "") == "" then
    return name
  end
  return name, ("%s.%s.svc.cluster.local"):format(spec.subdomain, pod.metadata.namespace)
end


--- The name that a pod's containers see as that of their host. @return string|nil, or nil and why there is none
function M.hostname(pod)
  local name, domain = names_of(pod)
  local full = domain and pod.spec.setHostnameAsFQDN and name .. "." .. domain or name
  if #full > FULL_NAME_MAX then
    return nil, ("failed to construct FQDN from pod hostname and cluster domain, FQDN %s is too long (%d characters is "
      .. "the max, %d characters requested)"):format(full, FULL_NAME_MAX, #full)
  end
  return full
end


--- The user and the group that a container sees itself as. @return integer user, integer group
function M.user(pod, container)
  local user, group = process.user()
  local wanted = security_context.field(pod, container, "runAsUser")
  if not wanted and user == 0 and security_context.field(pod, container, "runAsNonRoot") then
    wanted = ANYBODY
  end
  return wanted or user, security_context.field(pod, container, "runAsGroup") or (wanted and 0 or group)
end


-- The names of its own address: that by which others know it comes first.
local function own_names(pod)
  local name, domain = names_of(pod)
  return domain and ("%s.%s\t%s"):format(name, domain, name) or name
end


-- /etc/hosts as the kubelet writes it.
local function hosts_text(pod)
  local lines = {
    "# Kubernetes-managed hosts file.", "127.0.0.1\tlocalhost", "::1\tlocalhost ip6-localhost ip6-loopback",
    ("%s\t%s"):format(pod.status and pod.status.podIP or "127.0.0.1", own_names(pod)),
  }
  for _, alias in ipairs(pod.spec.hostAliases or {}) do
    lines[#lines + 1] = ("%s\t%s"):format(alias.ip, table.concat(alias.hostnames or {}, "\t"))
  end
  return table.concat(lines, "\n") .. "\n"
end


-- Adds a file of ours, unless a volume is mounted in its place.
local function add_own(mounts, mount)
  for _, other in ipairs(mounts) do
    if other.target == mount.target then
      return
    end
  end
  mounts[#mounts + 1] = mount
end


-- Files that each container has in /etc, from the folder of its pod.
local function add_etc(mounts, place, run)
  local pod = run.pod
  local files = {
    hosts = hosts_text(pod), hostname = M.hostname(pod) .. "\n", ["resolv.conf"] = resolv_conf.text(pod, run.resolver),
  }
  local ok, why = place.base:make_folder(place.path .. "/etc")
  for name, text in pairs(files) do
    if ok then
      ok, why = place.base:write(("%s/etc/%s"):format(place.path, name), text, ALL_READ)
    end
    add_own(mounts, { source = ("%s/etc/%s"):format(place.folder, name), target = "/etc/" .. name })
  end
  return ok, why
end


-- A file for the container's user, where the machine does not know it.
local function add_passwd(mounts, place, run)
  local user, group = M.user(run.pod, run.container)
  local text = passwd.text(user, group, HOME)
  if not text then
    return true
  end
  local path = "/passwd/" .. run.container.name
  add_own(mounts, { source = place.folder .. path, target = "/etc/passwd" })
  local ok, why = place.base:make_folder(place.path .. "/passwd")
  if ok then
    ok, why = place.base:write(place.path .. path, text, ALL_READ)
  end
  return ok, why
end


local function is_read_only(entry, volume)
  for _, kind in ipairs(READ_ONLY) do
    if volume[kind] then
      return true
    end
  end
  return entry.readOnly or (volume.persistentVolumeClaim or {}).readOnly or false
end


-- Parents first, as runtimes sort them; of two at the same place the later one stays the later one.
local function sort(mounts)
  local depth, number = {}, {}
  for i, mount in ipairs(mounts) do
    depth[mount], number[mount] = select(2, mount.target:gsub("/", "")), i
  end
  table.sort(mounts, function(a, b)
    if depth[a] ~= depth[b] then
      return depth[a] < depth[b]
    end
    return number[a] < number[b]
  end)
end


-- Makes the container's termination message, an empty file. @return string|nil path in the pod's folder, or nil and why
local function make_message_file(place, run)
  local path = "/words/" .. run.container.name
  local ok, why = place.base:make_folder(place.path .. "/words")
  if ok then
    ok, why = place.base:write(place.path .. path, "", ALL_WRITE)
  end
  return ok and path or nil, why
end


-- All that is mounted. @return table|nil mounts, string|nil message file of the termination message, or nil and why not
local function mounts_of(place, run, program)
  local mounts, container, message = {}, run.container, nil
  local ok, why = volumes.each(place, run, function(mount)
    mounts[#mounts + 1] = {
      source = mount.folder.folder,
      subpath = mount.part,
      target = clean_path(mount.entry.mountPath),
      read_only = is_read_only(mount.entry, mount.volume),
    }
    return true
  end)
  if ok then
    ok, why = add_etc(mounts, place, run)
  end
  if ok then
    ok, why = add_passwd(mounts, place, run)
  end
  if ok and program then
    ok, why = program.source ~= nil, program.why
    add_own(mounts, { source = program.source, target = program.target, read_only = true })
  end
  if ok and container.terminationMessagePath then
    local path
    path, why = make_message_file(place, run)
    ok, message = path ~= nil, path and place.path .. path
    mounts[#mounts + 1] = {
      source = ok and place.folder .. path, target = clean_path(container.terminationMessagePath),
    }
  end
  if not ok then
    return nil, why
  end
  sort(mounts)
  return mounts, message
end


--- The settings of a container for process.start.
--- @param place table the pod's own: see process_runtime.lua  @param run table see pod_worker.lua
--- @param program table? what the image stands for: images.lua
--- @return table|nil plan { container =, directory = where it starts, root =, home =, message = the file of its last
---   words, below place.base }, or nil and why not
function M.plan(place, run, program)
  local hostname, unnamed = M.hostname(run.pod)
  if not hostname then
    return nil, unnamed
  end
  local mounts, message = mounts_of(place, run, program)
  if not mounts then
    return nil, message
  end
  local directory = clean_path(run.container.workingDir or "")
  if directory ~= "/" then
    mounts[#mounts + 1] = { target = directory }
  end
  local root = "/roots/" .. run.container.name
  local ok, why = place.base:make_folder(place.path .. root)
  if not ok then
    return nil, why
  end
  local user, group = M.user(run.pod, run.container)
  return {
    directory = directory,
    root = "/",
    home = HOME,
    message = message,
    container = {
      root = place.folder .. root,
      hostname = hostname,
      user = user,
      group = group,
      read_only = (run.container.securityContext or {}).readOnlyRootFilesystem or false,
      mounts = mounts,
    },
  }
end


return M
