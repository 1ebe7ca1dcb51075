--- Finds the endpoints of a Service in its EndpointSlices.
---
--- Rules: kubernetes/pkg/proxy/topology.go (CategorizeEndpoints): the ready ones; if there are none, those that end and
--- still serve. endpointslicecache.go: one that is in several slices counts once.
local M = {}

local SLICES = "endpointslices.discovery.k8s.io"
local SERVICE_NAME = "kubernetes.io/service-name"


--- The EndpointSlices of a Service.
function M.slices(server, namespace, name)
  local res = server.registry:by_kind("discovery.k8s.io", "v1", "EndpointSlice")
  local list = {}
  server.store:collection(SLICES):each(namespace, nil, function(entry)
    if entry.labels and entry.labels[SERVICE_NAME] == name then
      local slice = server.store.object(res, entry)
      if slice.addressType == "IPv4" then
        list[#list + 1] = slice
      end
    end
    return true
  end)
  return list
end


--- The Service that an EndpointSlice's entry belongs to, or nil.
function M.service_of(entry)
  return entry.labels and entry.labels[SERVICE_NAME]
end


-- A list of a slice's that may be missing, or null.
local function list_of(slice, name)
  local list = slice[name]
  return type(list) == "table" and list or {}
end


--- The ports of a slice.
function M.ports(slice)
  return list_of(slice, "ports")
end


-- The number of a Service's port in a slice.
local function number_of(slice, port)
  for _, known in ipairs(M.ports(slice)) do
    if (known.name or "") == (port.name or "") and (known.protocol or "TCP") == (port.protocol or "TCP") then
      return known.port
    end
  end
end


local function is_ready(endpoint)
  return (endpoint.conditions or {}).ready ~= false
end


local function still_serves(endpoint)
  local conditions = endpoint.conditions or {}
  return conditions.serving and conditions.terminating
end


--- Where connections to a Service's port go.
--- @param slices table see M.slices  @param port table of the Service's spec
--- @return table list of { address =, port = }
function M.of_port(slices, port)
  local ready, ending, seen = {}, {}, {}
  for _, slice in ipairs(slices) do
    local number = number_of(slice, port)
    for _, endpoint in ipairs(number and list_of(slice, "endpoints") or {}) do
      local list, address = is_ready(endpoint) and ready or still_serves(endpoint) and ending, endpoint.addresses[1]
      local place = address .. ":" .. number
      if list and not seen[place] then
        seen[place], list[#list + 1] = true, { address = address, port = number }
      end
    end
  end
  return #ready > 0 and ready or ending
end


--- The endpoints that have names: all that are ready.
--- @return table list of endpoints as in the slices
function M.ready(slices)
  local list = {}
  for _, slice in ipairs(slices) do
    for _, endpoint in ipairs(list_of(slice, "endpoints")) do
      if is_ready(endpoint) then
        list[#list + 1] = endpoint
      end
    end
  end
  return list
end


return M
