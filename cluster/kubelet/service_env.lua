--- The variables by which containers find Services.
---
--- Rules: kubernetes/pkg/kubelet/envvars/envvars.go, kubelet_pods.go (getServiceEnvVarMap).
local M = {}

local OWN_NAMESPACE, OWN_NAME = "default", "kubernetes" -- everybody has those of the API server


local function upper(name)
  return (name:gsub("%-", "_"):upper())
end


local function add_links(variables, name, port, address)
  local protocol = port.protocol or "TCP"
  local url = ("%s://%s:%d"):format(protocol:lower(), address, port.port)
  local prefix = ("%s_PORT_%d_%s"):format(name, port.port, protocol)
  variables[prefix] = url
  variables[prefix .. "_PROTO"] = protocol:lower()
  variables[prefix .. "_PORT"] = tostring(port.port)
  variables[prefix .. "_ADDR"] = address
  return url
end


local function add(variables, service)
  local name, address = upper(service.metadata.name), service.spec.clusterIP
  variables[name .. "_SERVICE_HOST"] = address
  for i, port in ipairs(service.spec.ports) do
    local url = add_links(variables, name, port, address)
    if i == 1 then
      variables[name .. "_SERVICE_PORT"] = tostring(port.port)
      variables[name .. "_PORT"] = url
    end
    if (port.name or "") ~= "" then
      variables[name .. "_SERVICE_PORT_" .. upper(port.name)] = tostring(port.port)
    end
  end
end


local function has_address(service)
  local address = service.spec.clusterIP
  return address and address ~= "" and address ~= "None" and next(service.spec.ports or {}) ~= nil
end


--- The variables of a pod's containers: for the Services that are now in its namespace, and for the API server.
--- @return table variables name → value
function M.of(server, pod)
  local res = server.registry:by_kind("", "v1", "Service")
  local namespace, variables = pod.metadata.namespace, {}
  if pod.spec.enableServiceLinks ~= false then
    server.store:collection(res.id):each(namespace, nil, function(entry)
      local service = server.store.object(res, entry)
      if has_address(service) then
        add(variables, service)
      end
      return true
    end)
  end
  local own = server.store:get(res.id, OWN_NAMESPACE, OWN_NAME)
  if own and not variables.KUBERNETES_SERVICE_HOST then
    add(variables, server.store.object(res, own))
  end
  return variables
end


return M
