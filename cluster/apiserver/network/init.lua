--- A network of pods' own (docs/decisions/0013): addresses, Services, names, and the API server inside of it.
local dns = require "cluster.apiserver.network.dns"
local dns_forward = require "cluster.apiserver.network.dns_forward"
local dns_stream = require "cluster.apiserver.network.dns_stream"
local host = require "cluster.host"
local machine_ports = require "cluster.apiserver.network.machine_ports"
local network = require "cluster.network"
local pod_ip_allocator = require "cluster.apiserver.network.pod_ip_allocator"
local proxy = require "cluster.apiserver.network.proxy"
local resolv_conf = require "cluster.apiserver.network.resolv_conf"

local M = {}
M.__index = M

local NODE, API_PORT = "10.244.0.1", 6443 -- the API server's endpoint
M.RESOLVER = "10.0.0.10" -- address of the Service kube-dns
local DNS_PORT = 53

-- How long a pod's network stays when its last process has ended. The kernel drops packets that are under way when a
-- network goes, and on a busy machine these are the ends of connections: a client would wait for minutes.
local LINGER_SECONDS = 3


--- @param server table the API server
--- @param options table
---   api       { address =, port = } where it listens on the machine
---   node      the address of the node, one of the machine's
---   complain  function(pod, message): something that the pod asks for cannot be had
function M.new(server, options)
  return setmetatable({
    server = server,
    api = options.api,
    node = options.node,
    addresses = pod_ip_allocator.new(),
    ports = machine_ports.new(options.complain),
    pods = {}, -- by uid: { address =, namespace = or nil }
  }, M)
end


--- The address of a pod, as long as it is there.
--- @param known string? the one that it had before the host was started again
--- @return string|nil nil when there is none left
function M:address(pod, known)
  local own = self.pods[pod.metadata.uid]
  if not own then
    own = { address = self.addresses:allocate(known) }
    self.pods[pod.metadata.uid] = own.address and own
  end
  return own.address
end


--- The network of a pod whose containers are about to start.
--- @param sysctls string? as network.pod takes them; only looked at when its network is made
--- @return userdata|nil for process.start; or nil and why there is none
function M:enter(pod, sysctls)
  local own = self.pods[pod.metadata.uid]
  if not own then
    return nil, "no address is left"
  elseif not own.namespace then
    local namespace, why = network.pod(own.address, sysctls)
    if not namespace then
      return nil, why
    end
    own.namespace = namespace
    self.ports:add(pod, own.address)
  end
  return own.namespace
end


--- No container of the pod runs any more, nor will: its network goes soon, but its address stays its own.
function M:leave(pod)
  local own = self.pods[pod.metadata.uid]
  if own and own.namespace then
    self.ports:remove(pod.metadata.uid)
    local namespace = own.namespace
    own.namespace = nil
    host.after(LINGER_SECONDS, function()
      namespace:close()
    end)
  end
end


--- The pod is gone.
function M:forget(pod)
  local own = self.pods[pod.metadata.uid]
  if own then
    self:leave(pod)
    self.addresses:release(own.address)
    self.pods[pod.metadata.uid] = nil
  end
end


-- A fixed object of the cluster's own.
local function ensure(server, path, object)
  local name = object.metadata.name
  local code, answer
  if server:call("GET", path .. "/" .. name) == 200 then
    code, answer = server:call("PATCH", path .. "/" .. name, object, { content_type = "application/merge-patch+json" })
  else
    code, answer = server:call("POST", path, object)
  end
  if code >= 300 then
    host.log("warn", "an object of the pods' network is missing", { object = name, error = answer.message })
  end
end


-- Where the Service kubernetes leads to.
-- Rules: kubernetes/pkg/controlplane/reconcilers/endpointsadapter.go.
local function ensure_endpoints(server)
  ensure(server, "/api/v1/namespaces/default/endpoints", {
    metadata = { name = "kubernetes", labels = { ["endpointslice.kubernetes.io/skip-mirror"] = "true" } },
    subsets = host.json.array { {
      addresses = host.json.array { { ip = NODE } },
      ports = host.json.array { { name = "https", port = API_PORT, protocol = "TCP" } },
    } },
  })
  ensure(server, "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", {
    metadata = { name = "kubernetes", labels = { ["kubernetes.io/service-name"] = "kubernetes" } },
    addressType = "IPv4",
    endpoints = host.json.array { { addresses = host.json.array { NODE }, conditions = { ready = true } } },
    ports = host.json.array { { name = "https", port = API_PORT, protocol = "TCP" } },
  })
end


-- The Service of names. It has no endpoints: the host itself answers at its address.
local function ensure_resolver(server)
  ensure(server, "/api/v1/namespaces/kube-system/services", {
    metadata = { name = "kube-dns", labels = { ["k8s-app"] = "kube-dns", ["kubernetes.io/name"] = "CoreDNS" } },
    spec = {
      clusterIP = M.RESOLVER,
      ports = host.json.array {
        { name = "dns", port = DNS_PORT, protocol = "UDP", targetPort = DNS_PORT },
        { name = "dns-tcp", port = DNS_PORT, protocol = "TCP", targetPort = DNS_PORT },
      },
    },
  })
end


-- @return listener, or nil and why not
local function serve_names(server)
  local known = dns.new(server, dns_forward.new(function()
    return resolv_conf.of_machine().nameservers
  end))
  local listener, why
  listener, why = network.datagrams {
    address = M.RESOLVER,
    port = DNS_PORT,
    answer = function(bytes, from)
      return (known:answer(bytes, function(answer)
        listener:send(answer, from)
      end))
    end,
  }
  if not listener then
    return nil, why
  end
  return dns_stream.serve(M.RESOLVER, DNS_PORT, function(...)
    return known:answer(...)
  end)
end


--- Serves Services and names.
function M:start()
  ensure_endpoints(self.server)
  ensure_resolver(self.server)
  local function translate(address, port)
    if address == NODE and port == API_PORT then
      return self.api.address, self.api.port
    end
    return address, port
  end
  proxy.start(self.server, translate, self.node)
  local listener, why = serve_names(self.server)
  if listener then
    listener, why = network.listen {
      address = NODE,
      port = API_PORT,
      target = function()
        return self.api.address, self.api.port
      end,
    }
  end
  if not listener then
    host.log("warn", "names or the API server cannot be reached from pods", { error = why })
  end
end


return M
