--- Addresses of Services: connections to them go to their endpoints, in turn.
---
--- Listens at a Service's address as long as it has an endpoint; else the kernel refuses connections at once. A node
--- port is served at the node's address, where pods reach it too, and on 127.0.0.1 of the machine. TCP only.
---
--- Rules: kubernetes/pkg/proxy.
local endpoints = require "cluster.apiserver.network.endpoints"
local host = require "cluster.host"
local network = require "cluster.network"

local M = {}
M.__index = M

local LOOPBACK = "127.0.0.1"
local AFFINITY_SECONDS = 10800
local CLIENTS_MAX = 1000 -- that a port remembers


-- The endpoint that a client had last, if that is still there.
local function known_endpoint(place, client)
  local known = place.clients[client]
  if not known or host.monotonic() - known.at > place.affinity then
    return nil
  end
  for _, endpoint in ipairs(place.endpoints) do
    if endpoint.address == known.address and endpoint.port == known.port then
      known.at = host.monotonic()
      return endpoint
    end
  end
end


local function remember(place, client, endpoint)
  if not place.clients[client] then
    place.client_count = place.client_count + 1
  end
  if place.client_count > CLIENTS_MAX then
    place.clients, place.client_count = {}, 1
  end
  place.clients[client] = { address = endpoint.address, port = endpoint.port, at = host.monotonic() }
end


-- Where the next connection of a client goes.
local function next_endpoint(place, client)
  local known = place.affinity and known_endpoint(place, client)
  if known then
    return known
  end
  place.turn = place.turn % #place.endpoints + 1
  local endpoint = place.endpoints[place.turn]
  if place.affinity then
    remember(place, client, endpoint)
  end
  return endpoint
end


local function affinity_of(spec)
  if spec.sessionAffinity ~= "ClientIP" then
    return nil
  end
  return ((spec.sessionAffinityConfig or {}).clientIP or {}).timeoutSeconds or AFFINITY_SECONDS
end


local function has_address(spec)
  return spec.type ~= "ExternalName" and spec.clusterIP and spec.clusterIP ~= "None" and spec.clusterIP ~= ""
end


-- The addresses where a Service needs a listener: "ADDRESS:PORT" → { address, port, machine, endpoints }.
local function wanted_by(self, service)
  local wanted, spec, meta = {}, service.spec, service.metadata
  local slices = has_address(spec) and endpoints.slices(self.server, meta.namespace, meta.name) or {}
  for _, port in ipairs(#slices > 0 and spec.ports or {}) do
    local list = (port.protocol or "TCP") == "TCP" and endpoints.of_port(slices, port) or {}
    if #list > 0 then
      wanted[spec.clusterIP .. ":" .. port.port] = { address = spec.clusterIP, port = port.port, endpoints = list }
    end
    for _, address in ipairs(#list > 0 and (port.nodePort or 0) > 0 and { LOOPBACK, self.node } or {}) do
      wanted[address .. ":" .. port.nodePort] = {
        address = address, port = port.nodePort, endpoints = list, machine = true,
      }
    end
  end
  return wanted
end


local function open(self, place)
  place.turn, place.clients, place.client_count = 0, {}, 0
  local listener, why = network.listen {
    address = place.address,
    port = place.port,
    machine = place.machine,
    target = function(client)
      local endpoint = next_endpoint(place, client)
      return self.translate(endpoint.address, endpoint.port)
    end,
  }
  if not listener then
    host.log("warn", "a Service's port is not served", { error = why })
  end
  place.listener = listener
end


-- Brings what is listened at in line with the Service as it is.
local function sync_service(self, namespace, name)
  local entry = self.server.store:get(self.services.id, namespace, name)
  local service = entry and self.server.store.object(self.services, entry)
  local wanted = service and wanted_by(self, service) or {}
  local key = namespace .. "/" .. name
  local places = self.places[key] or {}
  for where, place in pairs(places) do
    if not wanted[where] then
      if place.listener then
        place.listener:close()
      end
      places[where] = nil
    end
  end
  for where, new in pairs(wanted) do
    local place = places[where] or new
    place.endpoints, place.affinity = new.endpoints, affinity_of(service.spec)
    if not place.listener then
      open(self, place)
    end
    places[where] = place
  end
  self.places[key] = next(places) and places or nil
end


local function look_later(self, namespace, name)
  local key = namespace .. "/" .. name
  if self.waiting[key] then
    return
  end
  self.waiting[key] = true
  host.defer(function()
    self.waiting[key] = nil
    sync_service(self, namespace, name)
  end)
end


--- Serves all Services, those there are and those to come.
--- @param translate function(address, port) -> address, port: where an endpoint can be reached
--- @param node string the address of the node, one of the machine's
function M.start(server, translate, node)
  local self = setmetatable({
    server = server,
    translate = translate,
    node = node,
    services = server.registry:by_kind("", "v1", "Service"),
    places = {}, -- by "NAMESPACE/NAME": what is listened at, as in wanted_by
    waiting = {},
  }, M)
  server.store:subscribe(function(event)
    if event.id == self.services.id then
      look_later(self, event.entry.namespace, event.entry.name)
    elseif event.id == "endpointslices.discovery.k8s.io" then
      for _, entry in ipairs { event.entry, event.previous } do
        local name = endpoints.service_of(entry)
        if name then
          look_later(self, entry.namespace, name)
        end
      end
    end
  end)
  server.store:collection(self.services.id):each(nil, nil, function(entry)
    look_later(self, entry.namespace, entry.name)
    return true
  end)
end


return M
