-- Endpoints and EndpointSlices follow the pods that a Service selects.
local controllers = require "cluster.controllers"
local fake_runtime = require "cluster.kubelet.fake_runtime"
local kubelet = require "cluster.kubelet"
local testserver = require "testserver"

local CORE = "/api/v1/namespaces/default"


describe("The endpoints of a Service", function()
  local cluster

  local function add_pod(name, labels)
    cluster:must("POST", CORE .. "/pods", {
      metadata = { name = name, labels = labels }, spec = { containers = { { name = "c", image = "busybox" } } },
    })
    cluster:pass(1)
  end

  local function names()
    local list = {}
    for _, subset in ipairs(cluster:must("GET", CORE .. "/endpoints/web").subsets or {}) do
      for _, address in ipairs(subset.addresses or {}) do
        list[#list + 1] = address.targetRef.name
      end
    end
    table.sort(list)
    return list
  end

  before_each(function()
    cluster = testserver.new()
    controllers.start(cluster.server)
    kubelet.new(cluster.server, { runtime = fake_runtime.new(function() end) }):start()
    cluster:must("POST", CORE .. "/services", {
      metadata = { name = "web" }, spec = { selector = { app = "web" }, ports = { { port = 80 } } },
    })
    cluster:pass(1)
  end)

  it("hold ready pods that are selected, as long as they are there", function()
    add_pod("a", { app = "web" })
    add_pod("b", { app = "web" })
    add_pod("c", { app = "other" })
    add_pod("d")
    assert.same({ "a", "b" }, names())
    cluster:must("DELETE", CORE .. "/pods/a")
    cluster:pass(60)
    assert.same({ "b" }, names())
  end)

  it("follow labels that change, and a selector that does", function()
    add_pod("a", { app = "web" })
    add_pod("c", { app = "other" })
    cluster:patch("merge", CORE .. "/pods/a", { metadata = { labels = { app = "none" } } })
    cluster:pass(1)
    assert.same({}, names())
    cluster:patch("merge", CORE .. "/services/web", { spec = { selector = { app = "other" } } })
    cluster:pass(1)
    assert.same({ "c" }, names())
  end)

  it("leave slices that somebody else made for another Service alone", function()
    local slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    cluster:must("POST", slices, {
      metadata = { name = "outside", labels = { ["kubernetes.io/service-name"] = "outside" } }, addressType = "IPv4",
      endpoints = { { addresses = { "192.0.2.7" } } }, ports = { { name = "db", port = 5432, protocol = "TCP" } },
    })
    add_pod("a", { app = "web" })
    local other = cluster:must("GET", slices .. "/outside")
    assert.same({ nil, "192.0.2.7" }, { other.metadata.ownerReferences, other.endpoints[1].addresses[1] })
    local own
    for _, slice in ipairs(cluster:must("GET", slices).items) do
      own = slice.metadata.labels["kubernetes.io/service-name"] == "web" and slice or own
    end
    assert.equal("a", own.endpoints[1].targetRef.name)
  end)
end)
