-- EndpointSlices follow the pods that a Service selects.
local host = require "cluster.host"
local packing = require "cluster.controllers.endpointslice_packing"
local testcluster = require "testcluster"
local testslices = require "testslices"

local CORE = "/api/v1/namespaces/default"
local SERVICES, SLICES = CORE .. "/services", testslices.SLICES
local CHANGED = "endpoints.kubernetes.io/last-change-trigger-time"


describe("The EndpointSlices of a Service", function()
  local cluster

  local function add_pod(name, number, more)
    local spec = { containers = { {
      name = "c", image = "busybox", ports = { { name = "http", containerPort = number or 8080 } },
    } } }
    for key, value in pairs(more or {}) do
      spec[key] = value
    end
    cluster:must("POST", cluster.PODS, { metadata = { name = name, labels = { app = "web" } }, spec = spec })
    cluster:pass(1)
  end

  local function add_service(spec, labels)
    spec.selector = { app = "web" }
    spec.ports = spec.ports or { { name = "web", port = 80, targetPort = "http" } }
    cluster:must("POST", SERVICES, { metadata = { name = "web", labels = labels }, spec = spec })
    cluster:pass(1)
  end

  -- A pod that is ready when the spec says so.
  local function add_gated_pod(name)
    add_pod(name, 8080, { readinessGates = { { conditionType = "example.com/up" } } })
  end

  local function set_ready(name, status)
    cluster:patch("strategic", cluster.PODS .. "/" .. name .. "/status", {
      status = { conditions = { { type = "example.com/up", status = status } } },
    })
    cluster.settle()
  end

  -- The conditions of a pod's endpoint: "ready serving terminating", those that are true.
  local function conditions(name)
    local list = {}
    for _, slice in ipairs(testslices.of(cluster, "web")) do
      for _, endpoint in ipairs(slice.endpoints) do
        for _, condition in ipairs { "ready", "serving", "terminating" } do
          list[#list + 1] = endpoint.targetRef.name == name and endpoint.conditions[condition] and condition or nil
        end
      end
    end
    return table.concat(list, " ")
  end

  before_each(function()
    cluster = testcluster.new()
  end)

  it("hold the pods by the numbers that a named port has in them", function()
    add_service {}
    add_pod("a", 8080)
    add_pod("b", 9090)
    add_pod("c", 8080)
    assert.same({ "8080 : a c", "9090 : b" }, testslices.lines(cluster, "web"))
  end)

  it("find a named port in sidecars, and leave out one that a pod does not have", function()
    add_service { ports = {
      { name = "web", port = 80, targetPort = "http" }, { name = "m", port = 9, targetPort = "m" },
    } }
    add_pod("a", 8080)
    add_pod("b", 8080, { initContainers = { {
      name = "side", image = "busybox", restartPolicy = "Always", ports = { { name = "m", containerPort = 9999 } },
    } } })
    cluster:pass(2)
    assert.same({ "8080 : a", "9999 8080 : b" }, testslices.lines(cluster, "web"))
  end)

  it("move pods of a rolling update that renumbers a port to a slice of their own", function()
    add_service {}
    local template = {
      metadata = { labels = { app = "web" } },
      spec = { containers = { {
        name = "c", image = "busybox", ports = { { name = "http", containerPort = 8080 } },
      } } },
    }
    local path = "/apis/apps/v1/namespaces/default/deployments"
    cluster:must("POST", path, { metadata = { name = "web" }, spec = {
      replicas = 2, selector = { matchLabels = { app = "web" } }, template = template, minReadySeconds = 10,
    } })
    cluster:pass(12)
    local before = testslices.of(cluster, "web")
    assert.same({ 1, 2, 8080 }, { #before, #before[1].endpoints, before[1].ports[1].port })
    template.spec.containers[1].ports[1].containerPort = 9090
    cluster:change(path .. "/web", { spec = { template = template } })
    cluster:pass(5)
    local numbers = {}
    for _, slice in ipairs(testslices.of(cluster, "web")) do
      numbers[slice.ports[1].port] = true
    end
    assert.same({ [8080] = true, [9090] = true }, numbers)
    cluster:pass(60)
    local after = testslices.of(cluster, "web")
    assert.same({ 1, 2, 9090 }, { #after, #after[1].endpoints, after[1].ports[1].port })
  end)

  it("say of a pod that it is not ready, and that it serves while it goes", function()
    add_service {}
    cluster.is_deaf = true
    add_gated_pod "a"
    assert.equal("", conditions "a")
    set_ready("a", "True")
    assert.equal("ready serving", conditions "a")
    cluster:must("DELETE", cluster.PODS .. "/a")
    cluster.settle()
    assert.equal("serving terminating", conditions "a")
  end)

  it("call all pods ready where the Service says so", function()
    add_service { publishNotReadyAddresses = true }
    cluster.is_deaf = true
    add_gated_pod "a"
    assert.equal("ready", conditions "a")
    cluster:must("DELETE", cluster.PODS .. "/a")
    cluster.settle()
    assert.equal("ready terminating", conditions "a")
  end)

  it("tell node, zone, host name and pod", function()
    local node = cluster:must("GET", "/api/v1/nodes").items[1].metadata.name
    cluster:change("/api/v1/nodes/" .. node, { metadata = { labels = { ["topology.kubernetes.io/zone"] = "z" } } })
    add_service { clusterIP = "None" }
    add_pod("a", 8080, { hostname = "h", subdomain = "web" })
    local pod, slice = cluster:pod "a", testslices.of(cluster, "web")[1]
    assert.same({
      addresses = { pod.status.podIP },
      conditions = { ready = true, serving = true, terminating = false },
      hostname = "h", nodeName = node, zone = "z",
      targetRef = { kind = "Pod", name = "a", namespace = "default", uid = pod.metadata.uid },
    }, slice.endpoints[1])
    assert.same({ { name = "web", port = 8080, protocol = "TCP" } }, slice.ports)
    assert.equal("IPv4", slice.addressType)
  end)

  it("have the Service's labels, and say who keeps them and when that changed which they show", function()
    add_service({ clusterIP = "None" }, { team = "x", ["kubernetes.io/service-name"] = "no" })
    local meta = testslices.of(cluster, "web")[1].metadata
    assert.same({
      team = "x", ["service.kubernetes.io/headless"] = "", ["kubernetes.io/service-name"] = "web",
      ["endpointslice.kubernetes.io/managed-by"] = "endpointslice-controller.k8s.io",
    }, meta.labels)
    assert.same({ "web", "Service", true }, { meta.ownerReferences[1].name, meta.ownerReferences[1].kind,
      meta.ownerReferences[1].controller })
    assert.equal(meta.creationTimestamp, meta.annotations[CHANGED])
    cluster:pass(5)
    add_pod "a"
    assert.equal(cluster.condition(cluster:pod "a", "Ready").lastTransitionTime,
      testslices.of(cluster, "web")[1].metadata.annotations[CHANGED])
    cluster:change(SERVICES .. "/web", { metadata = { labels = { team = "y" } } })
    cluster:pass(1)
    assert.equal("y", testslices.of(cluster, "web")[1].metadata.labels.team)
    assert.is_nil(testslices.of(cluster, "web")[1].metadata.annotations)
  end)

  it("are one without endpoints where nothing is selected, which takes the first pods", function()
    add_service {}
    assert.same({ ":" }, testslices.lines(cluster, "web"))
    local name = testslices.of(cluster, "web")[1].metadata.name
    add_pod "a"
    assert.same({ "8080 : a" }, testslices.lines(cluster, "web"))
    cluster:must("DELETE", cluster.PODS .. "/a")
    cluster:pass(60)
    assert.same({ ":" }, testslices.lines(cluster, "web"))
    assert.equal(name, testslices.of(cluster, "web")[1].metadata.name)
  end)

  it("hold the pods of a headless Service without ports", function()
    add_service { clusterIP = "None", ports = host.json.array {} }
    add_pod "a"
    assert.same({ ": a" }, testslices.lines(cluster, "web"))
  end)

  it("come back, go with the Service, and leave those of others alone", function()
    cluster:must("POST", SLICES, {
      metadata = { name = "outside", labels = { ["kubernetes.io/service-name"] = "outside" } }, addressType = "IPv4",
      endpoints = { { addresses = { "192.0.2.7" } } }, ports = { { name = "db", port = 5432, protocol = "TCP" } },
    })
    add_service {}
    add_pod "a"
    cluster:must("DELETE", SLICES .. "/" .. testslices.of(cluster, "web")[1].metadata.name)
    cluster:pass(1)
    assert.same({ "8080 : a" }, testslices.lines(cluster, "web"))
    cluster:must("DELETE", SERVICES .. "/web")
    cluster:pass(1)
    assert.same({}, testslices.lines(cluster, "web"))
    local other = cluster:must("GET", SLICES .. "/outside")
    assert.same({ nil, "192.0.2.7" }, { other.metadata.ownerReferences, other.endpoints[1].addresses[1] })
  end)

  it("stay as they are when the Service selects nothing any more", function()
    add_service {}
    add_pod "a"
    cluster:change(SERVICES .. "/web", { spec = { selector = host.json.null } })
    cluster:must("DELETE", cluster.PODS .. "/a")
    cluster:pass(60)
    assert.equal("8080 : a", testslices.lines(cluster, "web")[1])
  end)

  it("leave out a pod whose node is not there, unless the Service takes them all", function()
    add_service {}
    cluster:must("POST", cluster.PODS, {
      metadata = { name = "lost", labels = { app = "web" } },
      spec = { nodeName = "gone", containers = { {
        name = "c", image = "busybox", ports = { { name = "http", containerPort = 8080 } },
      } } },
    })
    cluster:change(cluster.PODS .. "/lost/status", {
      status = { podIP = "10.244.9.9", podIPs = { { ip = "10.244.9.9" } } },
    })
    add_pod "a"
    assert.same({ "8080 : a" }, testslices.lines(cluster, "web"))
    cluster:change(SERVICES .. "/web", { spec = { publishNotReadyAddresses = true } })
    cluster:pass(1)
    assert.same({ "8080 : a lost" }, testslices.lines(cluster, "web"))
  end)
end)


describe("Endpoints are spread over slices", function()
  local function endpoints(first, last)
    local list = host.json.array {}
    for i = first, last do
      list[#list + 1] = { addresses = { ("10.0.%d.%d"):format(i // 250, i % 250) }, conditions = { ready = true } }
    end
    return list
  end

  local function slice(name, first, last)
    return { metadata = { name = name, labels = {} }, endpoints = endpoints(first, last) }
  end

  -- The writes: "+COUNT" for a new slice, "NAME COUNT" for a changed one, "-NAME" for one that goes.
  local function pack(slices, wanted)
    local changes, list = { create = {}, update = {}, delete = {} }, {}
    packing.pack(changes, slices, wanted, {}, function()
      return { metadata = { labels = {} }, endpoints = host.json.array {} }
    end)
    for _, made in ipairs(changes.create) do
      list[#list + 1] = "+" .. #made.endpoints
    end
    for _, changed in ipairs(changes.update) do
      list[#list + 1] = changed.metadata.name .. " " .. #changed.endpoints
    end
    for _, old in ipairs(changes.delete) do
      list[#list + 1] = "-" .. old.metadata.name
    end
    table.sort(list)
    return list
  end

  it("of 100 each", function()
    assert.same({ "+100", "+100", "+50" }, pack({}, endpoints(1, 250)))
  end)

  it("so that one change is one write", function()
    local function known()
      return { slice("a", 1, 100), slice("b", 101, 150), slice("c", 151, 160) }
    end
    assert.same({}, pack(known(), endpoints(1, 160)))
    assert.same({ "b 51" }, pack(known(), endpoints(1, 161)))
    assert.same({ "a 99" }, pack(known(), endpoints(2, 160)))
    assert.same({ "-c" }, pack(known(), endpoints(1, 150)))
  end)

  it("which change anyway, before others, and full ones before new ones", function()
    local wanted = endpoints(2, 160)
    wanted[#wanted + 1] = endpoints(200, 200)[1]
    assert.same({ "a 100" }, pack({ slice("a", 1, 100), slice("b", 101, 150), slice("c", 151, 160) }, wanted))
    assert.same({ "+60" }, pack({ slice("a", 1, 50) }, endpoints(1, 110)))
  end)
end)
