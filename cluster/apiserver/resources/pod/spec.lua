--- The rules for the spec of a pod, also inside templates.
---
--- Rules: kubernetes/pkg/apis/core/validation/validation.go (ValidatePodSpec).
local check = require "cluster.apiserver.resources.check"
local claims = require "cluster.apiserver.resources.pod.claims"
local containers = require "cluster.apiserver.resources.pod.containers"
local field = require "cluster.apiserver.field"
local ip = require "cluster.apiserver.resources.ip"
local metadata = require "cluster.apiserver.metadata"
local names = require "cluster.names"
local scheduling = require "cluster.apiserver.resources.pod.scheduling"
local security = require "cluster.apiserver.resources.pod.security"
local volumes = require "cluster.apiserver.resources.pod.volumes"

local M = {}

local NONE = {}
local RESTART_POLICIES = { "Always", "OnFailure", "Never" }
local DNS_POLICIES = { "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None" }
local NAMESERVERS_MAX, SEARCHES_MAX = 3, 32
local SECONDS_MAX = 2147483647
local HOSTNAME_MAX = 64


-- On the machine's network a port of a container is one of the machine. `is_pod`: it has been filled in already.
local function check_host_network(spec, is_pod, path, errors)
  if not spec.hostNetwork then
    return
  end
  for i, container in ipairs(check.list(spec.containers)) do
    for j, port in ipairs(container.ports or NONE) do
      if (is_pod or port.hostPort) and port.hostPort ~= port.containerPort then
        errors[#errors + 1] = field.invalid(("%s.containers[%d].ports[%d].hostPort"):format(path, i - 1, j - 1),
          port.hostPort or 0, "must match `containerPort` when `hostNetwork` is true")
      end
    end
  end
end


local function check_dns(spec, path, errors)
  local config = spec.dnsConfig
  path = path .. ".dnsConfig"
  if spec.dnsPolicy == "None" and #(config and config.nameservers or NONE) == 0 then
    errors[#errors + 1] = config
      and field.required(path .. ".nameservers", "must provide at least one DNS nameserver when `dnsPolicy` is None")
      or field.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
    return
  elseif not config then
    return
  end
  if #(config.nameservers or NONE) > NAMESERVERS_MAX then
    errors[#errors + 1] = field.invalid(path .. ".nameservers", config.nameservers,
      ("must not have more than %d nameservers"):format(NAMESERVERS_MAX))
  end
  for i, server in ipairs(config.nameservers or NONE) do
    ip.check(server, ("%s.nameservers[%d]"):format(path, i - 1), errors)
  end
  if #(config.searches or NONE) > SEARCHES_MAX then
    errors[#errors + 1] = field.invalid(path .. ".searches", config.searches,
      ("must not have more than %d search paths"):format(SEARCHES_MAX))
  end
end


local function check_gates(spec, path, errors)
  for i, gate in ipairs(spec.readinessGates or NONE) do
    check.each(errors, ("%s.readinessGates[%d].conditionType"):format(path, i - 1), gate.conditionType,
      names.qualified(gate.conditionType))
  end
  local seen = {}
  for i, gate in ipairs(spec.schedulingGates or NONE) do
    local at = ("%s.schedulingGates[%d]"):format(path, i - 1)
    check.each(errors, at, gate.name, names.qualified(gate.name))
    if seen[gate.name] then
      errors[#errors + 1] = field.duplicate(at, gate.name)
    end
    seen[gate.name] = true
  end
end


-- Fields that hold a name, by the rule for it, when they are given.
local function check_names(spec, list, rule, path, errors)
  for _, name in ipairs(list) do
    local value = spec[name]
    if value and value ~= "" then
      check.each(errors, path .. "." .. name, value, rule(value))
    end
  end
end


local function check_deadline(deadline, path, errors)
  if deadline and (deadline < 1 or deadline > SECONDS_MAX) then
    errors[#errors + 1] = field.invalid(path .. ".activeDeadlineSeconds", deadline,
      ("must be between 1 and %d, inclusive"):format(SECONDS_MAX))
  end
end


local function check_aliases(aliases, path, errors)
  for i, alias in ipairs(aliases or NONE) do
    local at = ("%s[%d]"):format(path, i - 1)
    ip.check(alias.ip, at .. ".ip", errors)
    for j, name in ipairs(alias.hostnames or NONE) do
      check.each(errors, ("%s.hostnames[%d]"):format(at, j - 1), name, names.subdomain(name))
    end
  end
end


local function check_hostname_override(spec, path, errors)
  local name = spec.hostnameOverride
  path = path .. ".hostnameOverride"
  if not name then
    return
  end
  if spec.setHostnameAsFQDN then
    errors[#errors + 1] = field.forbidden(path, "may not be specified when setHostnameAsFQDN is true")
  end
  if spec.hostNetwork then
    errors[#errors + 1] = field.forbidden(path, "may not be specified when hostNetwork is true")
  end
  if #name > HOSTNAME_MAX then
    errors[#errors + 1] = field.too_long(path, name, HOSTNAME_MAX)
  end
  check.each(errors, path, name, names.subdomain(name))
end


local function check_placing(spec, path, errors)
  scheduling.tolerations(spec.tolerations or NONE, path .. ".tolerations", errors)
  check_aliases(spec.hostAliases, path .. ".hostAliases", errors)
  check_names(spec, { "priorityClassName", "runtimeClassName" }, names.subdomain, path, errors)
  if spec.preemptionPolicy then
    check.choice(spec.preemptionPolicy, { "PreemptLowerPriority", "Never" }, path .. ".preemptionPolicy", errors)
  end
  if spec.os and spec.os.name ~= "linux" and spec.os.name ~= "windows" then
    errors[#errors + 1] = field.not_supported(path .. ".os", spec.os.name, { "linux", "windows" })
  end
end


--- Checks a spec and adds what is wrong with it to `errors`.
--- @param is_pod boolean it is that of a pod, not of a template
function M.validate(spec, path, errors, is_pod)
  local mountable = volumes.validate(spec.volumes, path .. ".volumes", errors)
  claims.validate(spec, path, errors)
  containers.regular(spec, mountable, path, errors)
  containers.init(spec, mountable, path, errors)
  containers.ephemeral(spec, mountable, path, errors)
  claims.validate_containers(spec, path, errors)
  check_host_network(spec, is_pod, path, errors)
  check.choice(spec.restartPolicy, RESTART_POLICIES, path .. ".restartPolicy", errors)
  check.choice(spec.dnsPolicy, DNS_POLICIES, path .. ".dnsPolicy", errors)
  metadata.check_labels(spec.nodeSelector, path .. ".nodeSelector", errors)
  security.pod(spec, path .. ".securityContext", errors)
  if spec.affinity then
    scheduling.affinity(spec.affinity, path .. ".affinity", errors)
  end
  check_dns(spec, path, errors)
  check_gates(spec, path, errors)
  scheduling.spread(spec.topologySpreadConstraints or NONE, path .. ".topologySpreadConstraints", errors)
  check_hostname_override(spec, path, errors)
  check_names(spec, { "serviceAccountName", "nodeName" }, names.subdomain, path, errors)
  check_deadline(spec.activeDeadlineSeconds, path, errors)
  check_names(spec, { "hostname", "subdomain" }, names.label, path, errors)
  check_placing(spec, path, errors)
end


--- Checks the spec of a pod, also by rules that do not hold for templates.
function M.validate_pod(spec, path, errors)
  M.validate(spec, path, errors, true)
  containers.only_for_pods(spec.containers, path .. ".containers", errors)
  containers.only_for_pods(spec.initContainers, path .. ".initContainers", errors)
end


return M
