#!/usr/bin/env lua5.4
--- Writes lua/cluster/apiserver/tables/kinds.lua: the columns that a running API server prints the built-in kinds
--- with.
---
--- By hand, when the embedded server moves to another version of Kubernetes:
---     KUBECONFIG=… lua5.4 tools/printer-columns.lua
--- Only facts are taken (names, types, which are wide); descriptions are not.
--- The notation of the file is described, and read, in lua/cluster/apiserver/tables/columns.lua.
local cjson = require "cjson"

local TARGET = "lua/cluster/apiserver/tables/kinds.lua"
local WIDTH = 112

-- The resources whose kinds have columns of their own, by group.
local GROUPS = {
  { name = "", path = "api/v1", "configmaps ConfigMap", "endpoints Endpoints", "events Event",
    "namespaces Namespace", "nodes Node", "persistentvolumeclaims PersistentVolumeClaim",
    "persistentvolumes PersistentVolume", "pods Pod", "podtemplates PodTemplate", "secrets Secret",
    "services Service", "serviceaccounts ServiceAccount" },
  { name = "apps", "controllerrevisions ControllerRevision", "deployments Deployment", "replicasets ReplicaSet",
    "statefulsets StatefulSet" },
  { name = "batch", "jobs Job" },
  { name = "coordination.k8s.io", "leases Lease" },
  { name = "discovery.k8s.io", "endpointslices EndpointSlice" },
  { name = "events.k8s.io", "events Event" },
  { name = "policy", "poddisruptionbudgets PodDisruptionBudget" },
  { name = "rbac.authorization.k8s.io", "clusterrolebindings ClusterRoleBinding", "rolebindings RoleBinding" },
}


local function read_config()
  local path = assert(os.getenv "KUBECONFIG", "KUBECONFIG is not set")
  local file = assert(io.open(path))
  local text = file:read "a"
  file:close()
  return text:match "server: (%S+)", text:match "token: (%S+)"
end


local server, token = read_config()


local function columns_of(path)
  local pipe = assert(io.popen(([[curl -sk -H 'Authorization: Bearer %s' \
    -H 'Accept: application/json;as=Table;v=v1;g=meta.k8s.io' '%s/%s?limit=1']]):format(token, server, path)))
  local text = pipe:read "a"
  pipe:close()
  return cjson.decode(text).columnDefinitions
end


-- A column as a word of the notation, which has no place for a format other than that of a name.
local function word_of(column)
  assert(column.format == (column.name == "Name" and "name" or ""), column.name .. " has a format")
  local word = column.name:gsub(" ", "_")
  if column.type ~= "string" then
    word = word .. ":" .. column.type
  end
  return column.priority > 0 and "(" .. word .. ")" or word
end


-- The columns of a kind, in as many lines as they need.
local function kind_lines(kind, path)
  local text = {}
  local line = ("    %s = \""):format(kind)
  for i, column in ipairs(columns_of(path)) do
    local word = (i > 1 and " " or "") .. word_of(column)
    if #line + #word > WIDTH then
      text[#text + 1] = line .. '"'
      line = '      .. "'
    end
    line = line .. word
  end
  text[#text + 1] = line .. '",'
  return table.concat(text, "\n")
end


local lines = {
  "--- Written by tools/printer-columns.lua; the notation is described in tables/columns.lua.", "return {",
}
for _, group in ipairs(GROUPS) do
  lines[#lines + 1] = ("\n  [%q] = {"):format(group.name)
  local path = group.path or ("apis/%s/v1"):format(group.name)
  for _, resource in ipairs(group) do
    local plural, kind = resource:match "(%S+) (%S+)"
    lines[#lines + 1] = kind_lines(kind, path .. "/" .. plural)
  end
  lines[#lines + 1] = "  },"
end
lines[#lines + 1] = "\n}\n"
local file = assert(io.open(TARGET, "w"))
file:write(table.concat(lines, "\n"))
file:close()
