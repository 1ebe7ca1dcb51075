--- Where a connection through the proxy leads: to a pod, an endpoint of a Service, or a node.
---
--- Each function returns { scheme =, place = "ADDRESS[:PORT]" }, or nil and a status.
--- Rules: kubernetes/pkg/registry/core/{pod,service,node}: ResourceLocation, isValidAddress, isProxyableHostname;
--- apimachinery/pkg/util/net/port_split.go.
local host = require "cluster.host"
local status = require "cluster.apiserver.status"

local M = {}

local SCHEMES = { [""] = "http", http = "http", https = "https" }
local KUBELET_PORT = "10250"
local NOT_ALLOWED = "address not allowed"
local ADDRESS_TYPES = { InternalIP = true, ExternalIP = true }


-- "NAME", "NAME:PORT" or "SCHEME:NAME:PORT".
local function split(id)
  local parts = {}
  for part in (id .. ":"):gmatch "([^:]*):" do
    parts[#parts + 1] = part
  end
  local scheme, name, port = "", parts[1], parts[2] or ""
  if #parts == 3 then
    scheme, name, port = parts[1], parts[2], parts[3]
  end
  if #parts <= 3 and name ~= "" and SCHEMES[scheme] then
    return { scheme = SCHEMES[scheme], name = name, port = port }
  end
end


local function read(request, kind, name)
  local res = request.server.registry:by_kind("", "v1", kind)
  local entry = request.server.store:get(res.id, res.namespaced and request.namespace or "", name)
  if not entry then
    return nil, status.not_found(res, name)
  end
  return request.server.store.object(res, entry)
end


local function bytes_of(address)
  local a, b, c, d = (address or ""):match "^(%d+)%.(%d+)%.(%d+)%.(%d+)$"
  a, b, c, d = tonumber(a), tonumber(b), tonumber(c), tonumber(d)
  if a and a < 256 and b < 256 and c < 256 and d < 256 then
    return a, b
  end
end


-- No multicast, no link, nobody, everybody; and this machine only where it has no other address.
local function is_allowed(address, node_address)
  local first, second = bytes_of(address)
  if not first or first == 0 or first >= 224 or first == 169 and second == 254 then
    return false
  end
  return first ~= 127 or address == node_address
end


local function address_of_node(node)
  for _, address in ipairs((node.status or {}).addresses or {}) do
    if ADDRESS_TYPES[address.type] then
      return address.address
    end
  end
end


local function is_port(text)
  local number = text:find "^%d+$" and #text <= 5 and tonumber(text)
  return number and number > 0 and number < 65536
end


local function at(scheme, address, port)
  if port ~= "" and not is_port(port) then
    return nil, status.bad_request(('invalid port "%s"'):format(port))
  end
  return { scheme = scheme, place = port ~= "" and address .. ":" .. port or address }
end


local function first_port(pod)
  for _, container in ipairs(pod.spec.containers) do
    local port = (container.ports or {})[1]
    if port then
      return tostring(port.containerPort)
    end
  end
  return ""
end


local function refuse(kind, request)
  return nil, status.bad_request(("invalid %s request %q"):format(kind, request.name))
end


function M.of_pod(request)
  local target = split(request.name)
  if not target then
    return refuse("pod", request)
  end
  local pod, failure = read(request, "Pod", target.name)
  if not pod then
    return nil, failure
  end
  local node = pod.spec.nodeName and read(request, "Node", pod.spec.nodeName)
  local address = (pod.status or {}).podIP
  if not is_allowed(address, node and address_of_node(node)) then
    return nil, status.bad_request(NOT_ALLOWED)
  end
  return at(target.scheme, address, target.port ~= "" and target.port or first_port(pod))
end


-- True if an endpoint's pod has this address.
local function is_pod(request, address)
  local target = address.targetRef
  local pod = target and target.namespace == request.namespace and read(request, "Pod", target.name or "")
  for _, own in ipairs(pod and (pod.status or {}).podIPs or {}) do
    if own.ip == address.ip then
      return true
    end
  end
  return false
end


-- Begins anywhere in a list, and goes once around. @return iterator
local function around(list)
  local start, i = #list > 0 and host.random(#list) or 0, 0
  return function()
    i = i + 1
    return i <= #list and list[(start + i - 1) % #list + 1] or nil
  end
end


local function pick(request, subsets, port_name)
  for subset in around(subsets) do
    for _, port in ipairs(subset.ports or {}) do
      for address in around((port.name or "") == port_name and subset.addresses or {}) do
        if is_pod(request, address) then
          return address.ip, tostring(port.port)
        end
      end
    end
  end
end


-- The name of a Service's port that was asked for by its number.
local function name_of_port(request, name, number)
  local service, failure = read(request, "Service", name)
  if not service then
    return nil, failure
  end
  for _, port in ipairs(service.spec.ports or {}) do
    if port.port == number then
      return port.name or ""
    end
  end
  return nil, status.unavailable(("no service port %d found for service %q"):format(number, name))
end


local function none(name)
  return nil, status.unavailable(("no endpoints available for service %q"):format(name))
end


function M.of_service(request)
  local target = split(request.name)
  if not target then
    return refuse("service", request)
  end
  local port_name, failure = target.port, nil
  if port_name:find "^[+-]?%d+$" and math.tointeger(tonumber(port_name)) then
    port_name, failure = name_of_port(request, target.name, math.tointeger(tonumber(port_name)))
  end
  local known = port_name and read(request, "Endpoints", target.name)
  if not known then -- the server calls it a Service's fault, too
    return nil, failure or status.not_found(request.res, target.name)
  elseif #(known.subsets or {}) == 0 then
    return none(target.name)
  end
  local address, port = pick(request, known.subsets, port_name)
  if not address then
    return none(request.name)
  end
  return at(target.scheme, address, port)
end


--- Of a node, `kubelet` = true says that it is its kubelet who is asked.
function M.of_node(request)
  local target = split(request.name)
  if not target then
    return refuse("node", request)
  end
  local node, failure = read(request, "Node", target.name)
  if not node then
    return nil, failure
  end
  local address = address_of_node(node)
  if not address then
    return nil, status.unknown "no preferred addresses found; known addresses: []"
  end
  local endpoint = ((node.status.daemonEndpoints or {}).kubeletEndpoint or {}).Port or 0
  local own_port = endpoint > 0 and tostring(endpoint) or KUBELET_PORT
  local is_kubelet = target.port == "" or target.port == own_port
  if not is_kubelet and not is_allowed(address) then
    return nil, status.bad_request(NOT_ALLOWED)
  end
  local found
  found, failure = at(is_kubelet and "https" or target.scheme, address, is_kubelet and own_port or target.port)
  if found then
    found.kubelet, found.node = is_kubelet, target.name
  end
  return found, failure
end


return M
