--- The environment and the command line of a container.
---
--- Rules: kubernetes/pkg/kubelet/kubelet_pods.go (makeEnvironmentVariables), third_party/forked/golang/expansion; of
--- resources: kubelet_resources.go (defaultPodLimitsForDownwardAPI), pkg/api/v1/resource/helpers.go.
local field = require "cluster.apiserver.field"
local host = require "cluster.host"
local quantity = require "cluster.quantity"

local M = {}

-- A container without a limit of these has the node's.
local DEFAULTED = { cpu = true, memory = true, ["ephemeral-storage"] = true }
local NOTHING, ONE, THOUSAND = quantity.of(0), quantity.of(1), quantity.of(1000)


local function joined(addresses)
  local list = {}
  for i, entry in ipairs(addresses or {}) do
    list[i] = entry.ip
  end
  return table.concat(list, ",")
end

local FIELDS = {
  ["metadata.name"] = function(pod)
    return pod.metadata.name
  end,
  ["metadata.namespace"] = function(pod)
    return pod.metadata.namespace
  end,
  ["metadata.uid"] = function(pod)
    return pod.metadata.uid
  end,
  ["spec.nodeName"] = function(pod)
    return pod.spec.nodeName
  end,
  ["spec.serviceAccountName"] = function(pod)
    return pod.spec.serviceAccountName
  end,
  ["status.hostIP"] = function(pod)
    return pod.status.hostIP
  end,
  ["status.podIP"] = function(pod)
    return pod.status.podIP
  end,
  ["status.hostIPs"] = function(pod)
    return joined(pod.status.hostIPs)
  end,
  ["status.podIPs"] = function(pod)
    return joined(pod.status.podIPs)
  end,
}


-- A label, an annotation or one of FIELDS.
local function field_value(pod, path)
  local map, key = path:match "^metadata%.(%l+)%['([^']+)'%]$"
  if map == "labels" or map == "annotations" then
    return (pod.metadata[map] or {})[key] or ""
  end
  local get = FIELDS[path]
  return get and get(pod)
end


-- Labels or annotations as a volume shows them: a line each, the value quoted as in Go.
local function lines_of(map)
  local lines = {}
  for key, value in pairs(map or {}) do
    lines[#lines + 1] = ("%s=%s"):format(key, field.quote(value))
  end
  table.sort(lines)
  return table.concat(lines, "\n")
end


--- The text that a downwardAPI volume has for a field path; nil if the path is not known here.
function M.field_text(pod, path)
  if path == "metadata.labels" or path == "metadata.annotations" then
    return lines_of(pod.metadata[path:match "%a+$"])
  end
  return field_value(pod, path)
end


local function container_of(pod, name)
  for _, list in ipairs { pod.spec.containers, pod.spec.initContainers or {} } do
    for _, container in ipairs(list) do
      if container.name == name then
        return container
      end
    end
  end
end


-- The amount of a resource in the first of some lists that has any of it.
local function first_of(lists, resource)
  for _, list in ipairs(lists) do
    local amount = quantity.parse(list[resource] or 0)
    if amount and quantity.sign(amount) ~= 0 then
      return amount
    end
  end
  return NOTHING
end


-- The limit of a container: its own, else that of its pod, else all that the node has for pods.
local function limit_of(pod, container, resource, read)
  local own = (container.resources or {}).limits or {}
  if not DEFAULTED[resource] then
    return first_of({ own }, resource)
  end
  local node = read("Node", nil, pod.spec.nodeName) or {}
  return first_of({ own, (pod.spec.resources or {}).limits or {}, (node.status or {}).allocatable or {} }, resource)
end


-- The amount as a number of the smallest steps that count: thousandths of a CPU, bytes.
local function steps(amount, resource)
  return quantity.float(quantity.whole(resource == "cpu" and quantity.multiply(amount, THOUSAND) or amount))
end


--- The text of a container's resource, as variables and files have it: how many divisors it has, rounded up.
--- @param name string? of the container, if the reference does not say another
--- @param ref table a ResourceFieldSelector  @param read function see M.variables
--- @return string|nil, or nil and why there is none
function M.resource_text(pod, name, ref, read)
  name = ref.containerName or name
  local container = container_of(pod, name)
  if not container then
    return nil, ("container %s not found"):format(name)
  end
  local list, resource = ref.resource:match "^(%l+)%.(.+)$"
  if not (DEFAULTED[resource] or (resource or ""):find "^hugepages%-") then
    return nil, ("unsupported container resource : %s"):format(ref.resource)
  end
  local amount = list == "limits" and limit_of(pod, container, resource, read)
    or first_of({ (container.resources or {}).requests or {} }, resource)
  local divisor = quantity.parse(ref.divisor or 0)
  if not divisor or quantity.sign(divisor) == 0 then
    divisor = ONE
  end
  return ("%.0f"):format(math.ceil(steps(amount, resource) / steps(divisor, resource)))
end


--- The data of a ConfigMap or Secret as texts, or nil and why not.
--- @param binary boolean? with binaryData, which volumes show and variables do not
function M.data_of(read, kind, namespace, name, binary)
  local object = read(kind, namespace, name)
  if not object then
    return nil, ('%s "%s" not found'):format(kind:lower(), name)
  end
  local data = {}
  for key, value in pairs(object.data or {}) do
    data[key] = kind == "Secret" and host.base64.decode(value) or value
  end
  for key, value in pairs(binary and object.binaryData or {}) do
    data[key] = host.base64.decode(value)
  end
  return data
end


local SOURCES = { configMapKeyRef = "ConfigMap", secretKeyRef = "Secret" }

-- The value of one valueFrom; nil without an error where it is optional and not there.
local function referenced(pod, container, read, from)
  if from.resourceFieldRef then
    return M.resource_text(pod, container.name, from.resourceFieldRef, read)
  elseif from.fieldRef then
    local value = field_value(pod, from.fieldRef.fieldPath)
    if not value then
      return nil, ("fieldPath %s is not known here"):format(from.fieldRef.fieldPath)
    end
    return value
  end
  for source, kind in pairs(SOURCES) do
    local ref = from[source]
    if ref then
      local data, why = M.data_of(read, kind, pod.metadata.namespace, ref.name)
      local value = data and data[ref.key]
      if not value and not ref.optional then
        return nil, why or ("couldn't find key %s in %s %s/%s"):format(ref.key, kind, pod.metadata.namespace, ref.name)
      end
      return value
    end
  end
  return nil, "this kind of valueFrom cannot be given here"
end


--- Replaces $(NAME) by the variable; $$ stands for $; names that are not there stay as they are.
function M.expand(text, variables)
  local out, at = {}, 1
  while true do
    local dollar = text:find("$", at, true)
    if not dollar then
      out[#out + 1] = text:sub(at)
      return table.concat(out)
    end
    out[#out + 1] = text:sub(at, dollar - 1)
    local name = text:match("^%(([^)]*)%)", dollar + 1)
    if text:sub(dollar + 1, dollar + 1) == "$" then
      out[#out + 1], at = "$", dollar + 2
    elseif name then
      out[#out + 1], at = variables[name] or ("$(" .. name .. ")"), dollar + #name + 3
    else
      out[#out + 1], at = "$", dollar + 1
    end
  end
end


local function add_all_of(variables, pod, read, from)
  for _, kind in ipairs { "ConfigMap", "Secret" } do
    local ref = from[kind == "ConfigMap" and "configMapRef" or "secretRef"]
    if ref then
      local data, why = M.data_of(read, kind, pod.metadata.namespace, ref.name)
      if not data and not ref.optional then
        return nil, why
      end
      for key, value in pairs(data or {}) do
        variables[(from.prefix or "") .. key] = value
      end
    end
  end
  return true
end


--- The container's own variables, by name.
--- @param read function (kind, namespace, name) -> object | nil, for ConfigMaps, Secrets and the node
--- @param variables table those that it has unless it says otherwise; belongs to this function
--- @return table|nil variables, or nil and why the container cannot be started
function M.variables(pod, container, read, variables)
  for _, from in ipairs(container.envFrom or {}) do
    local ok, why = add_all_of(variables, pod, read, from)
    if not ok then
      return nil, why
    end
  end
  for _, entry in ipairs(container.env or {}) do
    if entry.valueFrom then
      local value, why = referenced(pod, container, read, entry.valueFrom)
      if why then
        return nil, why
      end
      variables[entry.name] = value
    else
      variables[entry.name] = M.expand(entry.value or "", variables)
    end
  end
  return variables
end


--- The command line: command and args with their variables in place. Empty when the image's own would run.
function M.command_line(container, variables)
  local words = {}
  for _, list in ipairs { container.command or {}, container.args or {} } do
    for _, word in ipairs(list) do
      words[#words + 1] = M.expand(word, variables)
    end
  end
  return words
end


return M
