#!/usr/bin/env lua5.4
--- Writes lua/moonloop/apiserver/tables/columns/*.lua: the columns that a running API server prints the built-in
--- kinds with.
---
--- By hand, when the embedded server moves to another version of Kubernetes:
---     KUBECONFIG=… lua5.4 tools/printer-columns.lua
--- The notation of the files is described, and read, in lua/moonloop/apiserver/tables/columns.lua.
local cjson = require "cjson"

local TARGET = "lua/moonloop/apiserver/tables/columns/"
local WIDTH = 112

-- One file a group; the resources whose kinds have columns of their own.
local FILES = {
  core = { path = "api/v1", "configmaps ConfigMap", "endpoints Endpoints", "events Event", "namespaces Namespace",
    "nodes Node", "persistentvolumeclaims PersistentVolumeClaim", "persistentvolumes PersistentVolume", "pods Pod",
    "podtemplates PodTemplate", "replicationcontrollers ReplicationController", "secrets Secret", "services Service",
    "serviceaccounts ServiceAccount" },
  apps = { path = "apis/apps/v1", "controllerrevisions ControllerRevision", "daemonsets DaemonSet",
    "deployments Deployment", "replicasets ReplicaSet", "statefulsets StatefulSet" },
  autoscaling = { path = "apis/autoscaling/v2", "horizontalpodautoscalers HorizontalPodAutoscaler" },
  batch = { path = "apis/batch/v1", "cronjobs CronJob", "jobs Job" },
  coordination = { path = "apis/coordination.k8s.io/v1", "leases Lease" },
  discovery = { path = "apis/discovery.k8s.io/v1", "endpointslices EndpointSlice" },
  networking = { path = "apis/networking.k8s.io/v1", "ingresses Ingress", "networkpolicies NetworkPolicy" },
  policy = { path = "apis/policy/v1", "poddisruptionbudgets PodDisruptionBudget" },
  rbac = { path = "apis/rbac.authorization.k8s.io/v1", "clusterrolebindings ClusterRoleBinding",
    "rolebindings RoleBinding" },
  scheduling = { path = "apis/scheduling.k8s.io/v1", "priorityclasses PriorityClass" },
}


local function read_config()
  local path = assert(os.getenv "KUBECONFIG", "KUBECONFIG is not set")
  local file = assert(io.open(path))
  local text = file:read "a"
  file:close()
  return text:match "server: (%S+)", text:match "token: (%S+)"
end


local server, token = read_config()


local function table_of(path)
  local pipe = assert(io.popen(([[curl -sk -H 'Authorization: Bearer %s' \
    -H 'Accept: application/json;as=Table;v=v1;g=meta.k8s.io' '%s/%s?limit=1']]):format(token, server, path)))
  local text = pipe:read "a"
  pipe:close()
  return cjson.decode(text)
end


-- Words of the descriptions that nearly every kind has.
local common = {}
for _, column in ipairs(table_of("api/v1/serviceaccounts").columnDefinitions) do
  common[column.description] = "@" .. column.name:lower()
end


local function wrap(lines, text)
  local line = " "
  for word in text:gsub("  ", " \\s "):gsub("\n", " \\n "):gmatch("%S+") do
    if #line + #word + 1 > WIDTH then
      lines[#lines + 1] = line
      line = " "
    end
    line = line .. " " .. word
  end
  lines[#lines + 1] = line
end


local function add_kind(lines, kind, columns)
  lines[#lines + 1] = ("\n  %s = [["):format(kind)
  for _, column in ipairs(columns) do
    local head = { column.name:gsub(" ", "_"), column.type }
    head[#head + 1] = column.format ~= "" and "=" .. column.format or nil
    head[#head + 1] = column.priority > 0 and "wide" or nil
    lines[#lines + 1] = table.concat(head, " ")
    if common[column.description] then
      lines[#lines] = lines[#lines] .. " " .. common[column.description]
    elseif column.description ~= "" then
      wrap(lines, column.description)
    end
  end
  lines[#lines + 1] = "]],"
end


for name, resources in pairs(FILES) do
  local lines = {
    "--- Written by tools/printer-columns.lua; the notation is described in tables/columns.lua.", "return {",
  }
  for _, resource in ipairs(resources) do
    local plural, kind = resource:match "(%S+) (%S+)"
    add_kind(lines, kind, table_of(resources.path .. "/" .. plural).columnDefinitions)
  end
  lines[#lines + 1] = "\n}\n"
  local file = assert(io.open(TARGET .. name .. ".lua", "w"))
  file:write(table.concat(lines, "\n"))
  file:close()
end
