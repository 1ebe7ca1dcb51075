--- The environment and the command line of a container.
---
--- Rules: kubernetes/pkg/kubelet/kubelet_pods.go (makeEnvironmentVariables), third_party/forked/golang/expansion.
local field = require "cluster.apiserver.field"
local host = require "cluster.host"

local M = {}

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
local function referenced(pod, read, from)
  if from.fieldRef then
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
--- @param read function (kind, namespace, name) -> object | nil, for ConfigMaps and Secrets
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
      local value, why = referenced(pod, read, entry.valueFrom)
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
