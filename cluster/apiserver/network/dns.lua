--- The names of a cluster: those of Services, of endpoints behind headless ones, of ports, and of pods' addresses.
---
--- Rules: github.com/kubernetes/dns/blob/master/docs/specification.md.
local dns_message = require "cluster.apiserver.network.dns_message"
local endpoints = require "cluster.apiserver.network.endpoints"
local host = require "cluster.host"

local M = {}
M.__index = M

local DOMAIN = ".cluster.local"
local LABEL_MAX = 63 -- bytes; externalName may have longer ones
local NAME_MAX = 253 -- bytes; the API server refuses a longer externalName
local NONE = {}


--- @param server table the API server, in whose store the Services are
--- @param forward table? see dns_forward.lua: who is asked about other names; without it, they are refused
function M.new(server, forward)
  return setmetatable({
    server = server, forward = forward, services = server.registry:by_kind("", "v1", "Service"),
  }, M)
end


local function service_at(self, namespace, name)
  local entry = self.server.store:get(self.services.id, namespace, name)
  return entry and self.server.store.object(self.services, entry)
end


local function is_headless(service)
  return service.spec.clusterIP == "None"
end


-- The label of an endpoint: its hostname, or one made of its address.
local function label_of(endpoint)
  return endpoint.hostname or (endpoint.addresses[1]:gsub("%.", "-"))
end


-- True if a message can hold the name.
local function is_sayable(name)
  for label in name:gmatch "[^.]+" do
    if #label > LABEL_MAX then
      return false
    end
  end
  return true
end


local function full_name(service)
  return service.metadata.name .. "." .. service.metadata.namespace .. ".svc" .. DOMAIN
end


-- In another order each time, so that clients that take the first one share the work.
local function shuffle(list)
  for i = #list, 2, -1 do
    local other = host.random(i) + 1
    list[i], list[other] = list[other], list[i]
  end
  return list
end


local function addresses_of(self, service, wanted)
  local meta, list = service.metadata, {}
  if not is_headless(service) then
    return not wanted and { { type = "A", address = service.spec.clusterIP } } or nil
  end
  for _, endpoint in ipairs(endpoints.ready(endpoints.slices(self.server, meta.namespace, meta.name))) do
    if not wanted or label_of(endpoint) == wanted then
      list[#list + 1] = { type = "A", address = endpoint.addresses[1] }
    end
  end
  return #list > 0 and shuffle(list) or nil
end


local function port_named(list, name, protocol)
  for _, port in ipairs(list or NONE) do
    if (port.name or "") == name and (port.protocol or "TCP"):lower() == protocol then
      return port.port
    end
  end
end


-- SRV of a port: of the Service, or of each endpoint of a headless one.
local function ports_of(self, service, name, protocol)
  local meta, list = service.metadata, {}
  if not is_headless(service) then
    local port = port_named(service.spec.ports, name, protocol)
    return port and { { type = "SRV", port = port, target = full_name(service) } } or nil
  end
  for _, slice in ipairs(endpoints.slices(self.server, meta.namespace, meta.name)) do
    local port = port_named(endpoints.ports(slice), name, protocol)
    for _, endpoint in ipairs(port and endpoints.ready { slice } or NONE) do
      list[#list + 1] = { type = "SRV", port = port, target = label_of(endpoint) .. "." .. full_name(service) }
    end
  end
  return #list > 0 and list or nil
end


-- The records of a name of a Service; `labels` are the labels in front of it.
local function records_of(self, service, labels)
  if service.spec.type == "ExternalName" then
    local target = service.spec.externalName
    return #labels == 0 and is_sayable(target) and { { type = "CNAME", target = target } } or nil
  elseif #labels == 2 and labels[1]:sub(1, 1) == "_" and labels[2]:sub(1, 1) == "_" then
    return ports_of(self, service, labels[1]:sub(2), labels[2]:sub(2))
  elseif #labels <= 1 then
    return addresses_of(self, service, labels[1])
  end
end


local function split(text)
  local labels = {}
  for label in text:gmatch "[^.]+" do
    labels[#labels + 1] = label
  end
  return labels
end


-- A name such as 10-244-0-5.ns.pod says the address itself.
local function pod_address(self, labels)
  local address = #labels == 3 and labels[1]:gsub("%-", ".")
  local is_address = address and address:match "^%d%d?%d?%.%d%d?%d?%.%d%d?%d?%.%d%d?%d?$"
  for part in (is_address and address or ""):gmatch "%d+" do
    is_address = is_address and tonumber(part) < 256
  end
  return is_address and self.server.store:get("namespaces", "", labels[2]) and { { type = "A", address = address } }
    or nil
end


-- The records under a name of the cluster, given without the domain; nil when there is no such name.
local function records_in_cluster(self, name)
  local labels = split(name)
  local kind = labels[#labels]
  if kind == "pod" then
    return pod_address(self, labels)
  elseif kind ~= "svc" then
    return nil
  elseif #labels <= 2 then -- "svc" and "NAMESPACE.svc" are there, as what other names end with
    return (#labels == 1 or self.server.store:get("namespaces", "", labels[1])) and NONE or nil
  end
  local service = service_at(self, labels[#labels - 1], labels[#labels - 2])
  return service and records_of(self, service, { table.unpack(labels, 1, #labels - 3) })
end


-- The name of the Service that has an address, which is given backwards.
local function service_with_address(self, reversed)
  local a, b, c, d = reversed:match "^(%d+)%.(%d+)%.(%d+)%.(%d+)$"
  local address = a and table.concat({ d, c, b, a }, ".")
  local found
  self.server.store:collection(self.services.id):each(nil, nil, function(entry)
    if entry.fields["spec.clusterIP"] == address then
      found = full_name { metadata = { namespace = entry.namespace, name = entry.name } }
    end
    return found == nil
  end)
  return found
end


-- The records of the type that was asked for; an alias counts as every type.
local function of_type(records, type)
  local list = {}
  for _, record in ipairs(records) do
    if dns_message.TYPES[record.type] == type or type == dns_message.TYPES.ANY or record.type == "CNAME" then
      list[#list + 1] = record
    end
  end
  return list
end


-- Adds the records of an alias' target, if that is in this cluster: resolvers read only one answer.
local function follow(self, records, type)
  local target = records[1] and records[1].type == "CNAME" and records[1].target:lower():gsub("%.$", "")
  local inside = target and target:sub(-#DOMAIN) == DOMAIN and target:sub(1, -#DOMAIN - 1)
  for _, record in ipairs(inside and records_in_cluster(self, inside) or NONE) do
    if dns_message.TYPES[record.type] == type then
      record.name = target
      records[#records + 1] = record
    end
  end
  return records
end


-- True if only this cluster can know a name: one of its domain, or of an address of its own.
local function is_own(name)
  return ("." .. name):sub(-#DOMAIN) == DOMAIN or name:find "%.244%.10%.in%-addr%.arpa$"
    or name:find "%.0%.10%.in%-addr%.arpa$"
end


--- @param name string in lower case, without the dot at the end  @param type integer as in message.TYPES
--- @return integer rcode, table records, as message.write takes them
function M:look_up(name, type)
  local inside = name:sub(-#DOMAIN) == DOMAIN and name:sub(1, -#DOMAIN - 1)
  local reversed = name:match "^(.*)%.in%-addr%.arpa$"
  if reversed then
    local target = service_with_address(self, reversed)
    local records = target and { { type = "PTR", target = target } } or NONE
    return target and dns_message.OK or dns_message.NO_NAME, of_type(records, type)
  elseif not inside then
    local is_foreign = name:find(".", 1, true) -- such names are known elsewhere, if at all
    return name == DOMAIN:sub(2) and dns_message.OK or is_foreign and dns_message.REFUSED or dns_message.NO_NAME, NONE
  end
  local records = records_in_cluster(self, inside)
  if not records then
    return dns_message.NO_NAME, NONE
  end
  return dns_message.OK, follow(self, of_type(records, type), type)
end


-- The target of an alias that leads out of the cluster, if its addresses are asked for.
local function target_outside(query, records)
  local last = records[#records]
  local target = last and last.type == "CNAME" and last.target:lower():gsub("%.$", "")
  local wants_addresses = query.type == dns_message.TYPES.A or query.type == dns_message.TYPES.AAAA
  return target and wants_addresses and #target <= NAME_MAX and not is_own(target) and target
end


-- With the addresses of what an alias stands for outside: resolvers look no further than at one answer.
local function follow_outside(self, query, records, target, reply)
  local bytes = dns_message.query(target, query.type)
  local target_query = dns_message.read(bytes)
  self.forward:ask(target_query, bytes, function(answer)
    for _, record in ipairs(dns_message.addresses(answer, target_query)) do
      record.name = target
      records[#records + 1] = record
    end
    reply(dns_message.write(query, dns_message.OK, records))
  end)
end


--- The answer to a query as it came from the wire.
--- @param reply function(bytes): an answer from elsewhere
--- @param most integer? bytes that the answer may have: it goes by TCP; nil: by UDP
--- @return string|nil nil when there is nobody to answer, boolean|nil true when somebody else is asked
function M:answer(bytes, reply, most)
  local query = dns_message.read(bytes, most)
  if not query then
    return nil
  elseif query.rcode then
    return dns_message.write(query, query.rcode, NONE)
  elseif self.forward and not is_own(query.name) then
    self.forward:ask(query, bytes, reply, most)
    return nil, true
  end
  local rcode, records = self:look_up(query.name, query.type)
  local target = self.forward and target_outside(query, records)
  if target then
    follow_outside(self, query, records, target, reply)
    return nil, true
  end
  return dns_message.write(query, rcode, records)
end


return M
