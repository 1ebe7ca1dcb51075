-- The listeners for Services and for pods, on a network that only notes them.
local testserver = require "testserver"

local CORE = "/api/v1/namespaces/default"
local SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"

local listening, taken -- "ADDRESS:PORT" → options; set of those that cannot be had
local namespaces -- by address, of pods whose network is there


local function listen(options)
  local where = options.address .. ":" .. options.port
  if taken[where] or listening[where] then
    return nil, "listen on " .. where .. ": Address already in use"
  end
  listening[where] = options
  return { close = function() listening[where] = nil end }
end


local function open_namespace(address)
  namespaces[address] = true
  return { close = function() namespaces[address] = nil end }
end


-- Returns the places that somebody listens at, sorted.
local function places()
  local list = {}
  for where, options in pairs(listening) do
    list[#list + 1] = where .. (options.machine and " of the machine" or "")
  end
  table.sort(list)
  return list
end


describe("In a network of pods' own", function()
  local addresses, cluster, machine_ports, network, proxy

  setup(function()
    package.loaded["cluster.network"] = { listen = listen, pod = open_namespace }
    package.loaded["cluster.tcp"] = {} -- of names, which nobody asks for here
    addresses = require "cluster.apiserver.network.pod_ip_allocator"
    machine_ports = require "cluster.apiserver.network.machine_ports"
    network = require "cluster.apiserver.network"
    proxy = require "cluster.apiserver.network.proxy"
  end)

  teardown(function()
    package.loaded["cluster.network"], package.loaded["cluster.tcp"] = nil, nil
    package.loaded["cluster.apiserver.network"] = nil
    package.loaded["cluster.apiserver.network.dns_forward"] = nil
    package.loaded["cluster.apiserver.network.dns_stream"] = nil
    package.loaded["cluster.apiserver.network.machine_ports"] = nil
    package.loaded["cluster.apiserver.network.proxy"] = nil
  end)

  before_each(function()
    listening, taken, namespaces = {}, {}, {}
    cluster = testserver.new()
  end)

  local function slice(endpoints)
    return {
      metadata = { name = "web", labels = { ["kubernetes.io/service-name"] = "web" } }, addressType = "IPv4",
      endpoints = endpoints, ports = { { name = "http", port = 8080, protocol = "TCP" } },
    }
  end

  local function endpoint(address, ready, ending)
    return { addresses = { address }, conditions = { ready = ready, serving = ready or ending, terminating = ending } }
  end

  -- Where connections from these clients go.
  local function targets(where, clients)
    local list = {}
    for i, client in ipairs(clients) do
      local address, port = listening[where].target(client)
      list[i] = address .. ":" .. port
    end
    return list
  end

  local function start(spec)
    spec.clusterIP, spec.ports = "10.0.7.7", spec.ports or { { name = "http", port = 80 } }
    cluster:must("POST", CORE .. "/services", { metadata = { name = "web" }, spec = spec })
    proxy.start(cluster.server, function(address, port)
      return address, port
    end, "192.0.2.1")
    cluster:pass(1)
  end

  it("a Service is listened for as long as somebody is behind it", function()
    start {}
    assert.same({}, places())
    cluster:must("POST", SLICES, slice { endpoint("10.244.0.5", true), endpoint("10.244.0.6", false) })
    cluster:pass(1)
    assert.same({ "10.0.7.7:80" }, places())
    assert.same({ "10.244.0.5:8080" }, targets("10.0.7.7:80", { "10.244.0.9" }))
    cluster:must("PUT", SLICES .. "/web", slice { endpoint("10.244.0.5", false), endpoint("10.244.0.6", false) })
    cluster:pass(1)
    assert.same({}, places())
    cluster:must("PUT", SLICES .. "/web", slice { endpoint("10.244.0.6", true) })
    cluster:pass(1)
    assert.same({ "10.244.0.6:8080" }, targets("10.0.7.7:80", { "10.244.0.9" }))
    cluster:must("DELETE", CORE .. "/services/web")
    cluster:pass(1)
    assert.same({}, places())
  end)

  it("endpoints have their turns, and one that ends serves where no other is", function()
    start {}
    cluster:must("POST", SLICES, slice { endpoint("10.244.0.5", true), endpoint("10.244.0.6", true) })
    cluster:pass(1)
    assert.same({ "10.244.0.5:8080", "10.244.0.6:8080", "10.244.0.5:8080" },
      targets("10.0.7.7:80", { "10.244.0.9", "10.244.0.9", "10.244.0.9" }))
    cluster:must("PUT", SLICES .. "/web", slice { endpoint("10.244.0.5", false, true) })
    cluster:pass(1)
    assert.same({ "10.244.0.5:8080" }, targets("10.0.7.7:80", { "10.244.0.9" }))
  end)

  it("a client with affinity stays where it is, as long as that is there", function()
    start { sessionAffinity = "ClientIP" }
    cluster:must("POST", SLICES, slice { endpoint("10.244.0.5", true), endpoint("10.244.0.6", true) })
    cluster:pass(1)
    assert.same({ "10.244.0.5:8080", "10.244.0.6:8080", "10.244.0.5:8080" },
      targets("10.0.7.7:80", { "10.244.0.8", "10.244.0.9", "10.244.0.8" }))
    cluster:must("PUT", SLICES .. "/web", slice { endpoint("10.244.0.6", true) })
    cluster:pass(1)
    assert.same({ "10.244.0.6:8080" }, targets("10.0.7.7:80", { "10.244.0.8" }))
  end)

  it("a client stays at one number of a port that has several, also where pods share an address", function()
    start { sessionAffinity = "ClientIP" }
    local function numbered(name, number, endpoints)
      local made = slice(endpoints)
      made.metadata.name, made.ports[1].port = name, number
      return made
    end
    local here, clients = "192.0.2.9", { "10.244.0.8", "10.244.0.9", "10.244.0.8", "10.244.0.9" }
    cluster:must("POST", SLICES, numbered("old", 8080, { endpoint(here, true) }))
    cluster:must("POST", SLICES, numbered("new", 9090, { endpoint(here, true) }))
    cluster:must("POST", SLICES, numbered("twin", 9090, { endpoint(here, true) }))
    cluster:pass(1)
    local first = targets("10.0.7.7:80", clients)
    table.sort(first)
    assert.same({ here .. ":8080", here .. ":8080", here .. ":9090", here .. ":9090" }, first)
    assert.same(targets("10.0.7.7:80", clients), targets("10.0.7.7:80", clients))
    cluster:must("DELETE", SLICES .. "/old")
    cluster:pass(1)
    assert.same({ here .. ":9090", here .. ":9090" }, targets("10.0.7.7:80", { "10.244.0.8", "10.244.0.9" }))
  end)

  it("a node port is one of the machine, at the node's address too; a port without endpoints is none", function()
    start {
      type = "NodePort", ports = { { name = "http", port = 80, nodePort = 30080 }, { name = "none", port = 81 } },
    }
    cluster:must("POST", SLICES, slice { endpoint("10.244.0.5", true) })
    cluster:pass(1)
    assert.same({ "10.0.7.7:80", "127.0.0.1:30080 of the machine", "192.0.2.1:30080 of the machine" }, places())
    assert.same({ "10.244.0.5:8080" }, targets("192.0.2.1:30080", { "192.0.2.1" }))
  end)

  it("a port that is taken is tried again when the Service changes", function()
    taken["10.0.7.7:80"] = true
    start {}
    cluster:must("POST", SLICES, slice { endpoint("10.244.0.5", true) })
    cluster:pass(1)
    assert.same({}, places())
    taken = {}
    cluster:must("PUT", SLICES .. "/web", slice { endpoint("10.244.0.6", true) })
    cluster:pass(1)
    assert.same({ "10.244.0.6:8080" }, targets("10.0.7.7:80", { "10.244.0.8" }))
  end)

  local function pod(uid, ports)
    return { metadata = { name = uid, uid = uid }, spec = { containers = { { name = "c", ports = ports } } } }
  end

  it("ports of containers are ports of the machine, where they are free", function()
    local complaints = {}
    local ports = machine_ports.new(function(who, why)
      table.insert(complaints, who.metadata.name .. ": " .. why)
    end)
    taken = { ["127.0.0.1:5432"] = true, ["127.0.0.1:9000"] = true }
    local first = { { containerPort = 8080 }, { containerPort = 5432 }, { containerPort = 53, protocol = "UDP" } }
    local second = { { containerPort = 8080, hostPort = 80 }, { containerPort = 1, hostPort = 9000 } }
    ports:add(pod("a", first), "10.244.0.5")
    ports:add(pod("b", second), "10.244.0.6")
    assert.same({ "127.0.0.1:1 of the machine", "127.0.0.1:80 of the machine", "127.0.0.1:8080 of the machine" },
      places())
    assert.same({ "b: hostPort 9000: listen on 127.0.0.1:9000: Address already in use" }, complaints)
    assert.same({ "10.244.0.5:8080" }, targets("127.0.0.1:8080", { "127.0.0.1" }))
    ports:remove "a"
    assert.same({ "10.244.0.6:8080" }, targets("127.0.0.1:8080", { "127.0.0.1" }))
    ports:remove "b"
    assert.same({}, places())
  end)

  it("the network of a pod that has ended stays until its connections have ended", function()
    local pods = network.new(cluster.server, { api = { address = "127.0.0.1", port = 1 } })
    local web = pod("web", { { containerPort = 8080 } })
    assert.equal("10.244.0.2", pods:address(web))
    assert.truthy(pods:enter(web))
    pods:forget(web)
    assert.same({}, places())
    assert.same({ ["10.244.0.2"] = true }, namespaces)
    cluster:pass(2)
    assert.same({ ["10.244.0.2"] = true }, namespaces)
    cluster:pass(2)
    assert.same({}, namespaces)
  end)

  it("addresses are given once, and come round as late as they can", function()
    local pool = addresses.new()
    assert.same({ "10.244.0.2", "10.244.0.3" }, { pool:allocate(), pool:allocate "10.244.0.2" })
    assert.same({ "10.244.3.9", "10.244.0.4" }, { pool:allocate "10.244.3.9", pool:allocate "192.0.2.1" })
    pool:release "10.244.0.3"
    assert.equal("10.244.0.5", pool:allocate())
    assert.equal("10.244.0.6", pool:allocate "10.244.0.255")
    local count = 5
    while pool:allocate() do
      count = count + 1
    end
    assert.equal(65532 - 510, count)
  end)
end)
