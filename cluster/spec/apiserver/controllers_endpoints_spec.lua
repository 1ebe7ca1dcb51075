-- Endpoints follow the pods that a Service selects.
local endpoint_subsets = require "cluster.controllers.endpoint_subsets"
local host = require "cluster.host"
local testcluster = require "testcluster"

local CORE = "/api/v1/namespaces/default"
local SERVICES, ENDPOINTS = CORE .. "/services", CORE .. "/endpoints"


describe("The Endpoints of a Service", function()
  local cluster

  -- A pod whose port "http" has that number.
  local function add_pod(name, labels, number, gates)
    cluster:must("POST", cluster.PODS, {
      metadata = { name = name, labels = labels },
      spec = { readinessGates = gates, containers = { {
        name = "c", image = "busybox", ports = { { name = "http", containerPort = number or 8080 } },
      } } },
    })
    cluster:pass(1)
  end

  local function add_service(name, spec, metadata)
    metadata = metadata or {}
    metadata.name, spec.selector = name, spec.selector or { app = "web" }
    spec.ports = spec.ports or { { port = 80, targetPort = "http" } }
    cluster:must("POST", SERVICES, { metadata = metadata, spec = spec })
    cluster:pass(1)
  end

  -- Each subset in a line: "PORT… : READY… / NOT READY…".
  local function lines(name)
    local list = {}
    for i, subset in ipairs(cluster:must("GET", ENDPOINTS .. "/" .. name).subsets or {}) do
      local words = {}
      for _, port in ipairs(subset.ports or {}) do
        words[#words + 1] = tostring(port.port)
      end
      words[#words + 1] = ":"
      for _, address in ipairs(subset.addresses or {}) do
        words[#words + 1] = address.targetRef.name
      end
      words[#words + 1] = subset.notReadyAddresses and "/"
      for _, address in ipairs(subset.notReadyAddresses or {}) do
        words[#words + 1] = address.targetRef.name
      end
      list[i] = table.concat(words, " ")
    end
    table.sort(list)
    return list
  end

  before_each(function()
    cluster = testcluster.new()
  end)

  it("hold ready pods that are selected, as long as they are there", function()
    add_service("web", {})
    add_pod("a", { app = "web" })
    add_pod("b", { app = "web" })
    add_pod("c", { app = "other" })
    add_pod("d")
    assert.same({ "8080 : a b" }, lines "web")
    cluster:must("DELETE", cluster.PODS .. "/a")
    cluster:pass(60)
    assert.same({ "8080 : b" }, lines "web")
  end)

  it("follow labels that change, and a selector that does", function()
    add_service("web", {})
    add_pod("a", { app = "web" })
    add_pod("c", { app = "other" })
    cluster:change(cluster.PODS .. "/a", { metadata = { labels = { app = "none" } } })
    cluster:pass(1)
    assert.same({}, lines "web")
    cluster:change(SERVICES .. "/web", { spec = { selector = { app = "other" } } })
    cluster:pass(1)
    assert.same({ "8080 : c" }, lines "web")
  end)

  it("have a subset for each number that a named port has", function()
    add_service("web", { ports = { { name = "web", port = 80, targetPort = "http" }, { name = "m", port = 9 } } })
    add_pod("a", { app = "web" }, 8080)
    add_pod("b", { app = "web" }, 9090)
    add_pod("c", { app = "web" }, 8080)
    assert.same({ "8080 : a c", "9 : a b c", "9090 : b" }, lines "web")
  end)

  it("tell pods that are not ready apart, unless the Service takes them all", function()
    add_service("web", {})
    add_service("all", { publishNotReadyAddresses = true })
    cluster.is_deaf = true
    add_pod("a", { app = "web" })
    add_pod("b", { app = "web" }, 8080, { { conditionType = "example.com/never" } })
    assert.same({ "8080 : a / b" }, lines "web")
    assert.same({ "8080 : a b" }, lines "all")
    cluster:must("DELETE", cluster.PODS .. "/a")
    cluster.settle()
    assert.same({ "8080 : / b" }, lines "web")
    assert.same({ "8080 : a b" }, lines "all")
  end)

  it("have the labels of the Service, and say who made them and when that changed which they show", function()
    add_service("web", { clusterIP = "None", ports = host.json.array {} }, { labels = { team = "x" } })
    local found = cluster:must("GET", ENDPOINTS .. "/web").metadata
    assert.same({
      team = "x", ["service.kubernetes.io/headless"] = "",
      ["endpoints.kubernetes.io/managed-by"] = "endpoint-controller",
    }, found.labels)
    assert.same({ ["endpoints.kubernetes.io/last-change-trigger-time"] = found.creationTimestamp }, found.annotations)
    cluster:pass(5)
    add_pod("a", { app = "web" })
    local pod = cluster:pod "a"
    assert.same({ ": a" }, lines "web")
    assert.equal(cluster.condition(pod, "Ready").lastTransitionTime,
      cluster:must("GET", ENDPOINTS .. "/web").metadata.annotations["endpoints.kubernetes.io/last-change-trigger-time"])
    cluster:change(SERVICES .. "/web", { metadata = { labels = { team = "y" } } })
    cluster:pass(1)
    assert.equal("y", cluster:must("GET", ENDPOINTS .. "/web").metadata.labels.team)
  end)

  it("are put right, come back, and go with the Service", function()
    add_service("web", {})
    add_pod("a", { app = "web" })
    cluster:must("DELETE", ENDPOINTS .. "/web")
    cluster:pass(1)
    assert.same({ "8080 : a" }, lines "web")
    cluster:must("DELETE", SERVICES .. "/web")
    cluster:pass(1)
    assert.equal(404, (cluster:call("GET", ENDPOINTS .. "/web")))
  end)

  it("are left alone where the Service selects nothing or is a name outside", function()
    cluster:must("POST", SERVICES, { metadata = { name = "mine" }, spec = { ports = { { port = 80 } } } })
    add_service("outside", { type = "ExternalName", externalName = "example.com" })
    cluster:must("POST", ENDPOINTS, { metadata = { name = "mine" }, subsets = {
      { addresses = { { ip = "192.0.2.7" } }, ports = { { port = 80 } } },
    } })
    cluster:pass(1)
    assert.equal("192.0.2.7", cluster:must("GET", ENDPOINTS .. "/mine").subsets[1].addresses[1].ip)
    assert.equal(404, (cluster:call("GET", ENDPOINTS .. "/outside")))
  end)
end)


describe("Subsets of Endpoints", function()
  local function addresses(first, last)
    local list = {}
    for i = first, last do
      list[#list + 1] = { ip = ("10.0.%d.%d"):format(i // 250, i % 250) }
    end
    return list
  end

  it("have each address once, not ready where any says so", function()
    local a, b = { ip = "10.0.0.1" }, { ip = "10.0.0.2" }
    local http, other = { name = "http", port = 80 }, { name = "m", port = 9 }
    assert.same({ { addresses = { b }, notReadyAddresses = { a }, ports = { http, other } } }, endpoint_subsets.repack {
      { addresses = { b, a }, ports = { http } },
      { addresses = { b }, notReadyAddresses = { a }, ports = { other, http } },
    })
  end)

  it("lose addresses beyond the limit, those that are not ready first, and each subset its share", function()
    local subsets = {
      { addresses = addresses(1, 600), notReadyAddresses = addresses(601, 700) },
      { addresses = addresses(1001, 1300), notReadyAddresses = addresses(1301, 1400) },
    }
    assert.is_true(endpoint_subsets.truncate(subsets, 1000))
    assert.same({ 600, 50, 300, 50 }, { #subsets[1].addresses, #subsets[1].notReadyAddresses,
      #subsets[2].addresses, #subsets[2].notReadyAddresses })
    assert.is_false(endpoint_subsets.truncate(subsets, 1000))
    assert.is_true(endpoint_subsets.truncate(subsets, 90))
    assert.same({ 60, 30 }, { #subsets[1].addresses, #subsets[2].addresses })
    assert.same({}, { subsets[1].notReadyAddresses, subsets[2].notReadyAddresses })
  end)
end)
