-- Endpoints that somebody writes for a Service without selector are seen in EndpointSlices.
local host = require "cluster.host"
local testcluster = require "testcluster"
local testslices = require "testslices"

local CORE = "/api/v1/namespaces/default"
local SERVICES, ENDPOINTS = CORE .. "/services", CORE .. "/endpoints"


describe("Endpoints of a Service without selector", function()
  local cluster

  local function endpoints(subsets, metadata)
    metadata = metadata or {}
    metadata.name = "db"
    return { metadata = metadata, subsets = subsets }
  end

  local SUBSET = { addresses = { { ip = "192.0.2.7" } }, ports = { { name = "pg", port = 5432 } } }

  before_each(function()
    cluster = testcluster.new()
    cluster:must("POST", SERVICES, { metadata = { name = "db" }, spec = { ports = { { name = "pg", port = 5432 } } } })
    cluster:pass(1)
  end)

  it("are mirrored, and what becomes of them is", function()
    cluster:must("POST", ENDPOINTS, endpoints({ SUBSET }, { labels = { team = "x" }, annotations = { a = "b",
      ["kubectl.kubernetes.io/last-applied-configuration"] = "{}" } }))
    cluster:pass(1)
    local slice = testslices.of(cluster, "db")[1]
    assert.same({ "5432 : 192.0.2.7" }, testslices.lines(cluster, "db"))
    assert.same({
      team = "x", ["kubernetes.io/service-name"] = "db",
      ["endpointslice.kubernetes.io/managed-by"] = "endpointslicemirroring-controller.k8s.io",
    }, slice.metadata.labels)
    assert.same({ a = "b" }, slice.metadata.annotations)
    local owner = slice.metadata.ownerReferences[1]
    assert.same({ "db", "Endpoints" }, { owner.name, owner.kind })
    assert.same({ { addresses = { "192.0.2.7" }, conditions = { ready = true } } }, slice.endpoints)
    cluster:change(ENDPOINTS .. "/db", {
      subsets = { { notReadyAddresses = { { ip = "192.0.2.8" } }, ports = SUBSET.ports } },
    })
    cluster:pass(1)
    local after = testslices.of(cluster, "db")
    assert.same({ 1, slice.metadata.name }, { #after, after[1].metadata.name })
    assert.same({ { addresses = { "192.0.2.8" }, conditions = { ready = false } } }, after[1].endpoints)
    cluster:must("DELETE", ENDPOINTS .. "/db")
    cluster:pass(1)
    assert.same({}, testslices.lines(cluster, "db"))
  end)

  it("have a slice for each set of ports and each family", function()
    cluster:must("POST", ENDPOINTS, endpoints {
      { addresses = { { ip = "192.0.2.7" }, { ip = "2001:db8::7" } }, ports = { { port = 1 } } },
      { addresses = { { ip = "192.0.2.8" } }, ports = { { port = 2 } } },
    })
    cluster:pass(1)
    assert.same({ "1 : 192.0.2.7", "1 : 2001:db8::7", "2 : 192.0.2.8" }, testslices.lines(cluster, "db"))
  end)

  it("are mirrored up to 1,000 addresses of a subset, and an Event says so", function()
    local addresses = {}
    for i = 1, 1003 do
      addresses[i] = { ip = ("10.9.%d.%d"):format(i // 250, i % 250 + 1) }
    end
    cluster:must("POST", ENDPOINTS, endpoints { { addresses = addresses, ports = { { port = 1 } } } })
    cluster:pass(1)
    assert.equal(1000, #testslices.of(cluster, "db")[1].endpoints)
    assert.same({ "A max of 1000 addresses can be mirrored to EndpointSlices per Endpoints subset. "
      .. "3 addresses were skipped" }, cluster:messages("db", "TooManyAddressesToMirror"))
  end)

  it("are not mirrored when they say so, are of an election, or the Service selects pods or goes", function()
    local found = cluster:must("POST", ENDPOINTS, endpoints { SUBSET })
    cluster:pass(1)
    local function check(path, there, back)
      cluster:change(path, there)
      cluster:pass(1)
      assert.same({}, testslices.lines(cluster, "db"))
      cluster:change(path, back)
      cluster:pass(1)
      assert.same({ "5432 : 192.0.2.7" }, testslices.lines(cluster, "db"))
    end
    local none = host.json.null
    check(ENDPOINTS .. "/db", { metadata = { labels = { ["endpointslice.kubernetes.io/skip-mirror"] = "true" } } },
      { metadata = { labels = none } })
    check(ENDPOINTS .. "/db", { metadata = { annotations = { ["control-plane.alpha.kubernetes.io/leader"] = "{}" } } },
      { metadata = { annotations = none } })
    assert.equal(found.metadata.uid, cluster:must("GET", ENDPOINTS .. "/db").metadata.uid)
    cluster:must("POST", cluster.PODS, {
      metadata = { name = "a", labels = { app = "db" } }, spec = { containers = { { name = "c", image = "x" } } },
    })
    cluster:change(SERVICES .. "/db", { spec = { selector = { app = "db" } } })
    cluster:pass(1)
    assert.same({ "5432 : a" }, testslices.lines(cluster, "db"))
  end)

  it("go with their slices when the Service goes", function()
    cluster:must("POST", ENDPOINTS, endpoints { SUBSET })
    cluster:pass(1)
    cluster:must("DELETE", SERVICES .. "/db")
    cluster:pass(1)
    assert.same({}, testslices.lines(cluster, "db"))
    assert.equal(404, (cluster:call("GET", ENDPOINTS .. "/db")))
  end)
end)
