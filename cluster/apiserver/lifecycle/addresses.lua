--- IPAddresses of Services: each address that a Service got has one, as long as the Service has the address.
---
--- They are stored as they are, without the way through a request, like the objects of bootstrap_objects.lua.
--- Rules: kubernetes/pkg/registry/core/service/ipallocator/ipallocator.go, pkg/registry/core/service/storage/alloc.go.
local host = require "cluster.host"
local store = require "cluster.apiserver.store"
local workqueue = require "cluster.apiserver.lifecycle.workqueue"

local M = {}

local ID = "ipaddresses.networking.k8s.io"
local FAMILY, MANAGER = "ipaddress.kubernetes.io/ip-family", "ipaddress.kubernetes.io/managed-by"
local ALLOCATOR = "ipallocator.k8s.io"


local function is_address(text)
  return text ~= nil and text ~= "" and text ~= "None"
end


local function make(server, res, address, service)
  server.store:create(res, {
    apiVersion = res.api_version, kind = res.kind,
    metadata = {
      name = address, uid = host.uuid(), creationTimestamp = host.timestamp(),
      labels = { [FAMILY] = address:find(":", 1, true) and "IPv6" or "IPv4", [MANAGER] = ALLOCATOR },
    },
    spec = { parentRef = {
      resource = "services", namespace = service.namespace, name = service.name,
    } },
  })
end


-- Takes away the address that a Service had, unless somebody else says whose it is.
local function release(server, res, address, service)
  local entry = server.store:get(ID, "", address)
  if not entry then
    return
  end
  local object = store.object(res, entry)
  local labels, parent = object.metadata.labels or {}, object.spec.parentRef
  if labels[MANAGER] == ALLOCATOR and parent.namespace == service.namespace and parent.name == service.name then
    server.store:delete(res, entry, object)
  end
end


-- Makes the object of the address that a Service has now, and deletes the objects of its earlier addresses.
local function settle(server, res, had, service)
  local entry = server.store:get("services", service.namespace, service.name)
  local address = entry and entry.fields["spec.clusterIP"]
  for old in pairs(had) do
    if old ~= address then
      release(server, res, old, service)
      had[old] = nil
    end
  end
  if is_address(address) then
    had[address] = true
    if not server.store:get(ID, "", address) then
      make(server, res, address, service)
    end
  end
end


-- The Services there are, and those that stored addresses speak of, which are noted in `known`.
local function at_start(server, res, known)
  local list = {}
  server.store:collection("services"):each(nil, nil, function(entry)
    list[#list + 1] = { namespace = entry.namespace, name = entry.name }
  end)
  server.store:collection(ID):each(nil, nil, function(entry)
    local parent = store.object(res, entry).spec.parentRef
    local key = ("%s/%s"):format(parent.namespace, parent.name)
    known[key] = known[key] or {}
    known[key][entry.name] = true
    list[#list + 1] = { namespace = parent.namespace or "", name = parent.name }
  end)
  return list
end


--- Begins: sees to the Services there are at once, to others soon after they change.
function M.start(server)
  local res = server.registry:of("networking.k8s.io/v1", "IPAddress")
  if not res or not server.registry:of("v1", "Service") then
    return
  end
  local known = {}   -- "NAMESPACE/NAME" → set of the addresses that were seen
  local function sync(service)
    local key = service.namespace .. "/" .. service.name
    known[key] = known[key] or {}
    settle(server, res, known[key], service)
    if next(known[key]) == nil then
      known[key] = nil
    end
  end
  for _, service in ipairs(at_start(server, res, known)) do
    sync(service)
  end
  local work = workqueue.new("ipallocator", sync)
  server.store:subscribe(function(event)
    local entry = event.entry
    work:add(entry.namespace .. "/" .. entry.name, { namespace = entry.namespace, name = entry.name })
  end, { services = true })
end


return M
