--- The containers of a pod.
---
--- Rules: kubernetes/pkg/apis/core/validation/validation.go (validateContainers and its neighbours).
local check = require "cluster.apiserver.resources.check"
local env = require "cluster.apiserver.resources.pod.env"
local field = require "cluster.apiserver.field"
local handlers = require "cluster.apiserver.resources.pod.handlers"
local names = require "cluster.names"
local paths = require "cluster.apiserver.resources.pod.paths"
local resource_requirements = require "cluster.apiserver.resources.pod.resource_requirements"
local security = require "cluster.apiserver.resources.pod.security"

local M = {}

local NONE = {}
local PROTOCOLS = { "SCTP", "TCP", "UDP" }
local PULL_POLICIES = { "Always", "IfNotPresent", "Never" }
local MESSAGE_POLICIES = { "File", "FallbackToLogsOnError" }
local RESTART_POLICIES = { "Always", "Never", "OnFailure" }
local RESTART_ACTIONS, RESTART_OPERATORS = { "Restart", "RestartAllContainers" }, { "In", "NotIn" }
local RESTART_RULES_MAX, EXIT_CODES_MAX = 20, 255


local function check_port(port, seen, path, errors)
  if port.name then
    local messages = check.port_name(port.name)
    check.each(errors, path .. ".name", port.name, messages)
    if not messages and seen[port.name] then
      errors[#errors + 1] = field.duplicate(path .. ".name", port.name)
    end
    seen[port.name] = true
  end
  if port.containerPort == 0 then
    errors[#errors + 1] = field.required(path .. ".containerPort", "")
  else
    check.port(port.containerPort, path .. ".containerPort", errors)
  end
  if port.hostPort then
    check.port(port.hostPort, path .. ".hostPort", errors)
  end
  check.one_of(port.protocol, PROTOCOLS, path .. ".protocol", errors, true)
end


local function check_mount(mount, volumes, seen, path, list_path, errors)
  if mount.name == "" then
    errors[#errors + 1] = field.required(path .. ".name", "")
  end
  if not volumes[mount.name] then
    errors[#errors + 1] = field.not_found(path .. ".name", mount.name)
  end
  if mount.mountPath == "" then
    errors[#errors + 1] = field.required(path .. ".mountPath", "")
  end
  if seen[mount.mountPath] then
    errors[#errors + 1] = field.invalid(path .. ".mountPath", mount.mountPath, "must be unique")
  end
  seen[mount.mountPath] = true
  if mount.subPath then
    paths.descending(mount.subPath, list_path .. ".subPath", errors)
  end
  if mount.subPathExpr then
    if mount.subPath then
      errors[#errors + 1] = field.invalid(path .. ".subPathExpr", mount.subPathExpr,
        "subPathExpr and subPath are mutually exclusive")
    end
    paths.descending(mount.subPathExpr, list_path .. ".subPathExpr", errors)
  end
end


local function check_devices(container, volumes, path, errors)
  for i, device in ipairs(container.volumeDevices or NONE) do
    local at = ("%s.volumeDevices[%d]"):format(path, i - 1)
    local volume = volumes[device.name]
    if not volume then
      errors[#errors + 1] = field.not_found(at .. ".name", device.name)
    elseif not volume.persistentVolumeClaim and not volume.ephemeral then
      errors[#errors + 1] = field.invalid(at .. ".name", device.name,
        "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode")
    end
    if device.devicePath == "" then
      errors[#errors + 1] = field.required(at .. ".devicePath", "")
    end
  end
end


local function check_name(container, path, errors)
  if container.name == "" then
    errors[#errors + 1] = field.required(path .. ".name", "")
  else
    check.each(errors, path .. ".name", container.name, names.label(container.name))
  end
  if not container.image then
    errors[#errors + 1] = field.required(path .. ".image", "")
  end
end


--- Checks the rules for containers of all sorts. `volumes`: name → volume, those that can be mounted.
function M.common(container, volumes, path, errors)
  check_name(container, path, errors)
  check.choice(container.terminationMessagePolicy, MESSAGE_POLICIES, path .. ".terminationMessagePolicy", errors)
  local port_names, mounted = {}, {}
  for i, port in ipairs(container.ports or NONE) do
    check_port(port, port_names, ("%s.ports[%d]"):format(path, i - 1), errors)
  end
  env.validate(container, path, errors)
  for i, mount in ipairs(container.volumeMounts or NONE) do
    check_mount(mount, volumes, mounted, ("%s.volumeMounts[%d]"):format(path, i - 1), path .. ".volumeMounts", errors)
  end
  check_devices(container, volumes, path, errors)
  check.one_of(container.imagePullPolicy, PULL_POLICIES, path .. ".imagePullPolicy", errors, true)
  resource_requirements.validate(container.resources, path .. ".resources", errors)
  if container.securityContext then
    security.container(container.securityContext, path .. ".securityContext", errors)
  end
end


-- Ports of the machine, each once for each protocol and address.
local function check_host_ports(list, path, errors)
  local seen = {}
  for i, container in ipairs(list) do
    for j, port in ipairs(container.ports or NONE) do
      local key = ("%s/%s/%d"):format(port.protocol, port.hostIP or "", port.hostPort or 0)
      if port.hostPort and seen[key] then
        errors[#errors + 1] = field.duplicate(("%s[%d].ports[%d].hostPort"):format(path, i - 1, j - 1), key)
      end
      seen[key] = true
    end
  end
end


local function check_restart_rule(rule, path, errors)
  local codes = rule.exitCodes
  check.choice(rule.action or "", RESTART_ACTIONS, path .. ".action", errors)
  if not codes then
    errors[#errors + 1] = field.required(path .. ".exitCodes", "must be specified")
    return
  end
  check.choice(codes.operator or "", RESTART_OPERATORS, path .. ".exitCodes.operator", errors)
  if #(codes.values or NONE) > EXIT_CODES_MAX then
    errors[#errors + 1] = field.too_many(path .. ".exitCodes.values", #codes.values, EXIT_CODES_MAX)
  end
end


-- The rules of an init container are looked at when it has a policy, those of others in any case.
local function check_restart(container, path, errors, is_init)
  local rules, policy = container.restartPolicyRules or NONE, container.restartPolicy
  check.one_of(policy, RESTART_POLICIES, path .. ".restartPolicy", errors)
  if rules[1] and not policy then
    errors[#errors + 1] = field.required(path .. ".restartPolicy",
      "must specify restartPolicy when restart rules are used")
  end
  if is_init and not policy then
    return
  end
  path = path .. ".restartPolicyRules"
  if #rules > RESTART_RULES_MAX then
    errors[#errors + 1] = field.too_many(path, #rules, RESTART_RULES_MAX)
  end
  for i, rule in ipairs(rules) do
    check_restart_rule(rule, ("%s[%d]"):format(path, i - 1), errors)
  end
end


--- The containers that make up the pod.
function M.regular(spec, volumes, path, errors)
  local list, seen = check.list(spec.containers), {}
  path = path .. ".containers"
  if #list == 0 then
    errors[#errors + 1] = field.required(path, "")
    return
  end
  for i, container in ipairs(list) do
    local at = ("%s[%d]"):format(path, i - 1)
    M.common(container, volumes, at, errors)
    if seen[container.name] then
      errors[#errors + 1] = field.duplicate(at .. ".name", container.name)
    end
    seen[container.name] = true
    handlers.validate(container, at, errors, spec.terminationGracePeriodSeconds)
    check_restart(container, at, errors)
  end
  check_host_ports(list, path, errors)
end


-- The set of names of regular containers, and of others when they are given.
local function names_of(...)
  local set = {}
  for _, list in ipairs { ... } do
    for _, container in ipairs(check.list(list)) do
      set[container.name] = true
    end
  end
  return set
end


--- The containers that run before the others.
function M.init(spec, volumes, path, errors)
  local seen = names_of(spec.containers)
  path = path .. ".initContainers"
  for i, container in ipairs(spec.initContainers or NONE) do
    local at = ("%s[%d]"):format(path, i - 1)
    M.common(container, volumes, at, errors)
    check_restart(container, at, errors, true)
    if seen[container.name] then
      errors[#errors + 1] = field.duplicate(at .. ".name", container.name)
    end
    seen[container.name] = container.name ~= ""
    check_host_ports({ container }, path, errors)
    if container.restartPolicy == "Always" then
      handlers.validate(container, at, errors, spec.terminationGracePeriodSeconds)
    else
      handlers.forbid(container, at, errors)
    end
  end
end


local NOT_EPHEMERAL = { "lifecycle", "livenessProbe", "ports", "readinessProbe", "resizePolicy", "resources",
  "startupProbe" }


--- The containers that are added to a running pod to look at it.
function M.ephemeral(spec, volumes, path, errors)
  local others = names_of(spec.containers, spec.initContainers)
  local seen = names_of(spec.containers, spec.initContainers)
  for i, container in ipairs(spec.ephemeralContainers or NONE) do
    local at = ("%s.ephemeralContainers[%d]"):format(path, i - 1)
    M.common(container, volumes, at, errors)
    if seen[container.name] then
      errors[#errors + 1] = field.duplicate(at .. ".name", container.name)
    end
    seen[container.name] = true
    local target = container.targetContainerName or ""
    if target ~= "" and not others[target] then
      errors[#errors + 1] = field.not_found(at .. ".targetContainerName", target)
    end
    for _, name in ipairs(NOT_EPHEMERAL) do
      if container[name] and next(container[name]) then
        errors[#errors + 1] = field.forbidden(at .. "." .. name, "cannot be set for an Ephemeral Container")
      end
    end
  end
end


--- Checks rules that hold for pods but not for templates, since they came later.
function M.only_for_pods(list, path, errors)
  for i, container in ipairs(check.list(list)) do
    local name = container.image or ""
    if name:find("^%s") or name:find("%s$") then
      errors[#errors + 1] = field.invalid(("%s[%d].image"):format(path, i - 1), name,
        "must not have leading or trailing whitespace")
    end
  end
end


return M
