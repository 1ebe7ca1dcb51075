local testserver = require "testserver"

local SERVICES = "/api/v1/namespaces/default/services"


describe("services", function()
  local world
  before_each(function() world = testserver.new() end)

  local function make(name, spec)
    spec.ports = spec.ports or { { port = 80 } }
    return world:must("POST", SERVICES, { metadata = { name = name }, spec = spec })
  end

  it("get addresses of their own", function()
    local seen = {}
    for i = 1, 20 do
      local spec = make("s" .. i, {}).spec
      assert.matches("^10%.0%.", spec.clusterIP)
      assert.same({ spec.clusterIP }, spec.clusterIPs)
      assert.is_nil(seen[spec.clusterIP])
      seen[spec.clusterIP] = true
    end
  end)

  it("may choose one that is free", function()
    assert.equal("10.0.7.7", make("a", { clusterIP = "10.0.7.7" }).spec.clusterIP)
    local code, answer = world:call("POST", SERVICES,
      { metadata = { name = "b" }, spec = { clusterIP = "10.0.7.7", ports = { { port = 80 } } } })
    assert.equal(422, code)
    assert.matches("failed to allocate IP 10.0.7.7: provided IP is already allocated", answer.message, 1, true)
    world:must("DELETE", SERVICES .. "/a")
    assert.equal("10.0.7.7", make("b", { clusterIP = "10.0.7.7" }).spec.clusterIP)
  end)

  it("get ports on nodes, one for both protocols", function()
    local ports = make("a", { type = "NodePort", ports = {
      { name = "t", port = 53 }, { name = "u", port = 53, protocol = "UDP" }, { name = "w", port = 80 },
    } }).spec.ports
    assert.is_true(ports[1].nodePort >= 30000 and ports[1].nodePort <= 32767)
    assert.equal(ports[1].nodePort, ports[2].nodePort)
    assert.not_equal(ports[1].nodePort, ports[3].nodePort)
    local code, answer = world:call("POST", SERVICES, { metadata = { name = "b" },
      spec = { type = "NodePort", ports = { { port = 80, nodePort = ports[1].nodePort } } } })
    assert.equal(422, code)
    assert.matches("provided port is already allocated", answer.message, 1, true)
  end)

  it("keep what an update leaves out", function()
    local made = make("a", { type = "NodePort" })
    local changed = world:must("PUT", SERVICES .. "/a",
      { metadata = { name = "a" }, spec = { type = "NodePort", ports = { { port = 81 } } } })
    assert.equal(made.spec.clusterIP, changed.spec.clusterIP)
    assert.equal(made.spec.ports[1].nodePort, changed.spec.ports[1].nodePort)
  end)

  it("lose with their type what it gave them", function()
    make("a", { type = "NodePort" })
    local _, inner = world:patch("merge", SERVICES .. "/a", { spec = { type = "ClusterIP" } })
    assert.is_nil(inner.spec.ports[1].nodePort)
    local _, outer = world:patch("merge", SERVICES .. "/a", { spec = { type = "ExternalName", externalName = "x" } })
    assert.is_nil(outer.spec.clusterIP)
    assert.is_nil(outer.spec.ipFamilies)
  end)

  it("take nothing in a dry run", function()
    local body = { metadata = { name = "a" }, spec = { ports = { { port = 80 } } } }
    assert.equal("10.0.0.0", world:must("POST", SERVICES .. "?dryRun=All", body).spec.clusterIP)
    assert.equal(404, (world:call("GET", SERVICES .. "/a")))
  end)
end)
