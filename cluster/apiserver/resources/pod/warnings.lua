--- Warnings about pods that are valid, but probably not as intended.
---
--- Rules: kubernetes/pkg/api/pod/warnings.go.
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local names = require "cluster.names"
local quantity = require "cluster.quantity"

local M = {}

local NONE = {}
local SINCE = 'deprecated since %s; use "%s" instead'
local OLD_LABELS = {
  ["beta.kubernetes.io/arch"] = SINCE:format("v1.14", "kubernetes.io/arch"),
  ["beta.kubernetes.io/os"] = SINCE:format("v1.14", "kubernetes.io/os"),
  ["failure-domain.beta.kubernetes.io/region"] = SINCE:format("v1.17", "topology.kubernetes.io/region"),
  ["failure-domain.beta.kubernetes.io/zone"] = SINCE:format("v1.17", "topology.kubernetes.io/zone"),
  ["beta.kubernetes.io/instance-type"] = SINCE:format("v1.17", "node.kubernetes.io/instance-type"),
}
local NULL_SELECTOR = "%s.labelSelector: a null labelSelector results in matching no pod"
local FRACTION = "%s.resources.%s[%s]: fractional byte value %s is invalid, must be an integer"


local function about_name(name, what, warnings)
  local messages = names.label(name)
  if messages then
    warnings[#warnings + 1] = ("metadata.name: this is used in %s, which can result in surprising behavior; a DNS "
      .. "label is recommended: [%s]"):format(what, table.concat(messages, " "))
  end
end


local function add(warnings, text, ...)
  warnings[#warnings + 1] = text:format(...)
end


local function about_placing(spec, path, warnings)
  for _, key in ipairs(check.sorted_keys(spec.nodeSelector)) do
    if OLD_LABELS[key] then
      add(warnings, "%s.nodeSelector[%s]: %s", path, key, OLD_LABELS[key])
    end
  end
  for i, constraint in ipairs(spec.topologySpreadConstraints or NONE) do
    local at = ("%s.topologySpreadConstraints[%d]"):format(path, i - 1)
    if OLD_LABELS[constraint.topologyKey] then
      add(warnings, "%s.topologyKey: %s is %s", at, constraint.topologyKey, OLD_LABELS[constraint.topologyKey])
    end
    if not constraint.labelSelector then
      add(warnings, NULL_SELECTOR, at)
    end
  end
end


-- True if the paths are the same, or one is a folder above the other.
local function overlap(a, b)
  return a == b or a:sub(1, #b + 1) == b .. "/" or b:sub(1, #a + 1) == a .. "/"
end


-- The files of a part of a projected volume: { path, source }.
local function projected_files(part)
  local files = {}
  local function take(items, source)
    for _, item in ipairs(items or NONE) do
      files[#files + 1] = { item.path:gsub("/+$", ""), source }
    end
  end
  if part.configMap then
    take(part.configMap.items, "ConfigMap " .. field.quote(part.configMap.name or ""))
  elseif part.secret then
    take(part.secret.items, "Secret " .. field.quote(part.secret.name or ""))
  elseif part.downwardAPI then
    take(part.downwardAPI.items, "DownwardAPI")
  elseif part.serviceAccountToken then
    take({ part.serviceAccountToken }, "ServiceAccountToken")
  end
  return files
end


local function about_projected(volume, warnings)
  local all = {}
  for _, part in ipairs(check.list(volume.projected.sources)) do
    if next(part) == nil then
      add(warnings, "volume %s (Projected) has no sources provided", field.quote(volume.name))
    end
    for _, file in ipairs(projected_files(part)) do
      for _, other in ipairs(all) do
        if overlap(file[1], other[1]) then
          add(warnings, "volume %s (Projected): overlapping paths: %s (%s) with %s (%s)", field.quote(volume.name),
            field.quote(file[1]), file[2], field.quote(other[1]), other[2])
        end
      end
      all[#all + 1] = file
    end
  end
end


-- Values that come twice under `key` in a list.
local function about_twice(list, key, word, path, warnings)
  local seen = {}
  for i, item in ipairs(list or NONE) do
    local value = item[key] or ""
    if seen[value] then
      add(warnings, "%s[%d].%s: duplicate %s %s", path, i - 1, key, word, field.quote(value))
    end
    seen[value] = true
  end
end


local function about_lists(spec, path, warnings)
  for i, volume in ipairs(spec.volumes or NONE) do
    if volume.gitRepo then
      add(warnings, "%s.volumes[%d].gitRepo: deprecated in v1.11, and disabled by default in v1.33+", path, i - 1)
    end
  end
  for _, volume in ipairs(spec.volumes or NONE) do
    if volume.projected then
      about_projected(volume, warnings)
    end
  end
  about_twice(spec.hostAliases, "ip", "ip", path .. ".hostAliases", warnings)
  about_twice(spec.imagePullSecrets, "name", "name", path .. ".imagePullSecrets", warnings)
  for i, secret in ipairs(spec.imagePullSecrets or NONE) do
    if (secret.name or "") == "" then
      add(warnings, '%s.imagePullSecrets[%d].name: invalid empty name ""', path, i - 1)
    end
  end
end


local function about_env(env, path, warnings)
  local seen = {}
  for i, variable in ipairs(env or NONE) do
    local reference = "$(" .. variable.name .. ")"
    local value = variable.value or ""
    if seen[variable.name]
      and (variable.valueFrom or value == reference or not value:find(reference, 1, true)) then
      add(warnings, "%s.env[%d]: hides previous definition of %s, which may be dropped when using apply", path, i - 1,
        field.quote(variable.name))
    end
    seen[variable.name] = true
  end
end


local function about_amounts(resources, path, warnings)
  for _, name in ipairs { "memory", "ephemeral-storage" } do
    for _, kind in ipairs { "limits", "requests" } do
      local text = resources and resources[kind] and resources[kind][name]
      local amount = text and quantity.parse(text)
      if amount and not quantity.is_whole(amount) then
        add(warnings, FRACTION, path, kind, name, field.quote(text))
      end
    end
  end
end


-- Ports of all containers; a number and protocol once, a name once.
local function about_ports(ports, path, known, warnings)
  for i, port in ipairs(ports or NONE) do
    local at = ("%s.ports[%d]"):format(path, i - 1)
    local key = ("%d/%s"):format(port.containerPort, port.protocol)
    local others = known.ports[key] or {}
    known.ports[key] = others
    for _, other in ipairs(others) do
      if (port.hostIP or "") == (other.hostIP or "") and (port.hostPort or 0) == (other.hostPort or 0) then
        add(warnings, "%s: duplicate port definition with %s", at, other.at)
      elseif not port.hostPort or not other.hostPort then
        add(warnings, "%s: overlapping port definition with %s", at, other.at)
      end
    end
    others[#others + 1] = { at = at, hostIP = port.hostIP, hostPort = port.hostPort }
  end
end


local function about_port_names(ports, path, known, warnings)
  for i, port in ipairs(ports or NONE) do
    local at, other = ("%s.ports[%d]"):format(path, i - 1), known.names[port.name or ""]
    if other then
      add(warnings, "%s: duplicate port name %s with %s, services and probes that select ports by name will use %s", at,
        field.quote(port.name), other, other)
    elseif port.name then
      known.names[port.name] = at
    end
  end
end


local function each_container(spec, path, visit)
  for _, name in ipairs { "initContainers", "containers", "ephemeralContainers" } do
    for i, container in ipairs(check.list(spec[name])) do
      visit(container, ("%s.%s[%d]"):format(path, name, i - 1))
    end
  end
end


local function about_containers(spec, path, warnings)
  local known = { ports = {}, names = {} }
  each_container(spec, path, function(container, at)
    about_amounts(container.resources, at, warnings)
    about_env(container.env, at, warnings)
  end)
  each_container(spec, path, function(container, at)
    about_ports(container.ports, at, known, warnings)
  end)
  each_container(spec, path, function(container, at)
    about_port_names(container.ports, at, known, warnings)
  end)
end


-- A pod's spec, alone or within a template.
local function about_spec(spec, path, warnings)
  about_placing(spec, path, warnings)
  about_lists(spec, path, warnings)
  about_containers(spec, path, warnings)
  if (spec.terminationGracePeriodSeconds or 0) < 0 then
    add(warnings, "%s: must be >= 0; negative values are invalid and will be treated as 1",
      path .. ".terminationGracePeriodSeconds")
  end
end


--- Warnings about a new pod; there are none about a change of one.
function M.pod(object, old)
  if old then
    return NONE
  end
  local warnings = {}
  about_name(object.metadata.name, "the Pod's hostname", warnings)
  about_spec(object.spec, "spec", warnings)
  return warnings
end


--- Warnings about the template of a new object, or of one whose spec has changed.
function M.template(object, old)
  if old and object.metadata.generation == old.metadata.generation then
    return NONE
  end
  local warnings = {}
  if not old then
    about_name(object.metadata.name, "Pod names and hostnames", warnings)
  end
  local path, pods = "spec.template.spec", object.spec.template
  if object.kind == "CronJob" then
    path, pods = "spec.jobTemplate.spec.template.spec", object.spec.jobTemplate.spec.template
  end
  about_spec(pods.spec, path, warnings)
  if object.kind == "StatefulSet" and (object.spec.revisionHistoryLimit or 0) < 0 then
    add(warnings,
      "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended")
  end
  return warnings
end


return M
