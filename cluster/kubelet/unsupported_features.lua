--- Features of containers that cannot be had here. A container that needs one waits, and its status says why: no
--- feature is ignored silently.
---
--- These are accepted without effect, because a running program does not notice: limits and requests, and settings that
--- take rights away (dropped capabilities, seccomp). On a machine that lets its user have
--- no containers, processes and files are, too.
local images = require "cluster.kubelet.images"
local clean_path = require "cluster.apiserver.clean_path"
local restarts = require "cluster.restarts"
local security_context = require "cluster.kubelet.security_context"

local M = {}

-- Images that are there for their tools only; those are the machine's here.
local TOOLS = { "busybox", "alpine", "debian", "ubuntu" }

local VOLUMES = { "emptyDir", "configMap", "secret", "projected", "downwardAPI", "persistentVolumeClaim" }
local TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount" -- mounted for everybody, by admission


-- By the repository's name: postgres:17-alpine is there for something else.
local function is_tools(image)
  local repository = images.repository(image)
  for _, name in ipairs(TOOLS) do
    if repository:find(name, 1, true) then
      return true
    end
  end
  return false
end


--- The command line of a container, or why its image cannot be had. Images of tools have a shell as their command, and
--- nothing in front of args; what others would put there is not known here, unless they stand for a program.
--- @param words table command and args, with their variables in place
--- @param program table? what the image stands for: images.lua
--- @return table|nil words, string|nil reason, string|nil message
function M.command(container, words, program)
  if (container.command and #container.command > 0) or (is_tools(container.image) and #words > 0) then
    return words
  elseif is_tools(container.image) then
    return { "sh" }
  elseif program then
    return { program.target, table.unpack(#words > 0 and words or program.arguments) }
  end
  local hint = ("no image is pulled here, and no program is known for %q: moonloop dev --image NAME=PROGRAM says what "
    .. "an image runs, or give the container a command"):format(container.image)
  if container.imagePullPolicy == "Never" then
    return nil, "ErrImageNeverPull", ("Container image %q is not present with pull policy of Never: %s"):format(
      container.image, hint)
  end
  return nil, "ErrImagePull", hint
end


local function rights(_, container)
  local own = container.securityContext or {}
  if own.privileged then
    return "a privileged container"
  elseif own.capabilities and own.capabilities.add and own.capabilities.add[1] then
    return "capabilities to be added"
  end
end


local function user_of_process(pod, container, user)
  local wanted = security_context.field(pod, container, "runAsUser")
  if wanted and wanted ~= user then
    return ("runAsUser %d: everything runs as user %d"):format(wanted, user)
  elseif security_context.field(pod, container, "runAsNonRoot") and user == 0 then
    return "runAsNonRoot: everything runs as root"
  end
end


local function restart_rules(_, container)
  if restarts.starts_all(container) then
    return "restartPolicyRules with action RestartAllContainers"
  end
end


local function kind_of(volume)
  for _, kind in ipairs(VOLUMES) do
    if volume[kind] then
      return kind
    end
  end
end


local function volumes(pod, container)
  local known = {}
  for _, volume in ipairs(pod.spec.volumes or {}) do
    known[volume.name] = volume
  end
  for _, mount in ipairs(container.volumeMounts or {}) do
    local volume = known[mount.name]
    if not (volume and kind_of(volume)) then
      return ("volume %q: only emptyDir, configMap, secret, projected, downwardAPI and persistentVolumeClaim are")
        :format(mount.name)
    elseif kind_of(volume) == "emptyDir" and (volume.emptyDir.medium or ""):find "^HugePages" then
      return ("volume %q: an emptyDir of medium %s"):format(mount.name, volume.emptyDir.medium)
    end
  end
  if container.volumeDevices and container.volumeDevices[1] then
    return "volumeDevices"
  end
end


-- Nothing is mounted for a process: a volume at /x would be somewhere else, or would have to be written to the
-- machine's own /x. It can have volumes in the folder where it starts.
local function paths_of_process(_, container)
  for _, mount in ipairs(container.volumeMounts or {}) do
    local path = mount.mountPath
    if path:sub(1, 1) == "/" and path ~= TOKEN_PATH then
      return ("volume %q at %s: without containers, only relative paths are"):format(mount.name, path)
    elseif (path .. "/" .. (mount.subPath or "")):find("..", 1, true) then
      return ("mount of volume %q: \"..\" is not"):format(mount.name)
    end
  end
end


local function hosts_of_process(pod)
  if pod.spec.hostAliases and pod.spec.hostAliases[1] then
    return "hostAliases: the machine's /etc/hosts is used"
  end
end

local RULES = { rights, restart_rules, volumes }
local RULES_OF_PROCESSES = { rights, user_of_process, restart_rules, volumes, paths_of_process, hosts_of_process }


-- In the words of kubelet and runc.
local function problem_of_container(pod, container)
  local user = security_context.field(pod, container, "runAsUser")
  if security_context.field(pod, container, "runAsNonRoot") and user == 0 then
    return "CreateContainerConfigError", "container's runAsUser breaks non-root policy"
  end
  for _, mount in ipairs(container.volumeMounts or {}) do
    if clean_path(mount.mountPath) == "/" then
      return "CreateContainerError", ("error mounting volume %q to rootfs at %q: mounting over / is prohibited"):format(
        mount.name, mount.mountPath)
    end
  end
end


--- @param user integer the user that everything runs as
--- @param no_containers string? why this machine has none; nil where it has
--- @return string|nil reason, string|nil message  for the status of a container that cannot run
function M.problem(pod, container, user, no_containers)
  for _, rule in ipairs(no_containers and RULES_OF_PROCESSES or RULES) do
    local what = rule(pod, container, user)
    if what and no_containers then
      return "CreateContainerError", ("cannot be given to a local process: %s (this machine allows no containers: %s)")
        :format(what, no_containers)
    elseif what then
      return "CreateContainerError", "cannot be given to a local container: " .. what
    end
  end
  if not no_containers then
    return problem_of_container(pod, container)
  end
end


return M
