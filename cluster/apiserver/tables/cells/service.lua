--- Cells of a service. Rules: kubernetes/pkg/printers/internalversion/printers.go (printService).
local age = require "cluster.apiserver.tables.age"
local text = require "cluster.apiserver.tables.text"


local function external_ip(obj, spec)
  if spec.type == "ClusterIP" or spec.type == "NodePort" then
    return text.join(spec.externalIPs, "<none>")
  elseif spec.type == "ExternalName" then
    return spec.externalName
  elseif spec.type ~= "LoadBalancer" then
    return "<unknown>"
  end
  local balancer, own = text.addresses(obj.status), text.join(spec.externalIPs, "")
  if balancer ~= "" and own ~= "" then
    return balancer .. "," .. own
  end
  return balancer ~= "" and balancer or own ~= "" and own or "<pending>"
end


local function ports(list)
  local parts = {}
  for i, port in ipairs(list or {}) do
    local node_port = (port.nodePort or 0) > 0 and ":" .. port.nodePort or ""
    parts[i] = ("%d%s/%s"):format(port.port, node_port, port.protocol)
  end
  return text.join(parts, "<none>")
end


--- @return table cells in the order of kinds.lua
return function(obj, now)
  local spec = obj.spec or {}
  return {
    obj.metadata.name, spec.type or "", (spec.clusterIPs or {})[1] or "<none>", external_ip(obj, spec),
    ports(spec.ports), age.of(obj, now), text.labels(spec.selector),
  }
end
