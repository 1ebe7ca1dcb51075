-- A server without controllers, as envtest has one: kube-apiserver alone.
local controllers = require "cluster.controllers"
local host = require "cluster.host"
local testserver = require "testserver"

local NAMESPACES, CONFIGMAPS = "/api/v1/namespaces", testserver.CONFIGMAPS


describe("a server without controllers", function()
  local world
  before_each(function() world = testserver.new { controllers = false } end)

  local function owned_by(owner)
    return { metadata = { ownerReferences = { {
      apiVersion = "v1", kind = "ConfigMap", name = owner.metadata.name, uid = owner.metadata.uid,
      blockOwnerDeletion = true,
    } } } }
  end

  it("has the namespaces, classes and levels that kube-apiserver makes", function()
    for _, name in ipairs { "default", "kube-system", "kube-public", "kube-node-lease" } do
      world:must("GET", NAMESPACES .. "/" .. name)
    end
    world:must("GET", "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical")
    world:must("GET", "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/exempt")
  end)

  it("lists its groups as APIServices", function()
    controllers.start_of_server(world.server)
    world.settle()
    world:must("GET", "/apis/apiregistration.k8s.io/v1/apiservices/v1.apps")
  end)

  it("puts nothing into a namespace", function()
    world:must("POST", NAMESPACES, { metadata = { name = "a" } })
    world.settle()
    assert.equal(0, #world:must("GET", "/api/v1/serviceaccounts").items)
    assert.equal(0, #world:must("GET", "/api/v1/configmaps").items)
  end)

  it("publishes the authority for servers of extensions, and not in each namespace", function()
    world.server:publish_authority "PEM"
    world.settle()
    local list = world:must("GET", "/api/v1/configmaps").items
    assert.equal(1, #list)
    assert.equal("extension-apiserver-authentication", list[1].metadata.name)
    assert.equal("kube-system", list[1].metadata.namespace)
  end)

  it("takes pods without a service account", function()
    local spec = world:must("POST", "/api/v1/namespaces/default/pods", {
      metadata = { name = "a" }, spec = { containers = { { name = "c", image = "i" } } },
    }).spec
    assert.is_nil(spec.serviceAccountName)
    assert.is_nil(spec.volumes)
  end)

  it("keeps a deleted namespace, and what is in it, until somebody finalizes it", function()
    world:must("POST", NAMESPACES, { metadata = { name = "a" } })
    world:must("POST", NAMESPACES .. "/a/configmaps", { metadata = { name = "c" } })
    world:must("DELETE", NAMESPACES .. "/a")
    world.settle()
    local left = world:must("GET", NAMESPACES .. "/a")
    assert.equal("Terminating", left.status.phase)
    assert.is_nil(left.status.conditions)
    world:must("GET", NAMESPACES .. "/a/configmaps/c")
    left.spec.finalizers = host.json.array {}
    world:must("PUT", NAMESPACES .. "/a/finalize", left)
    assert.equal(404, (world:call("GET", NAMESPACES .. "/a")))
  end)

  it("leaves the dependents of a deleted owner", function()
    local owner = world:configmap "owner"
    world:configmap("child", owned_by(owner))
    world:must("DELETE", CONFIGMAPS .. "/owner")
    world.settle()
    world:must("GET", CONFIGMAPS .. "/child")
  end)

  it("leaves an owner whose dependents are to go first", function()
    local owner = world:configmap "owner"
    world:configmap("child", owned_by(owner))
    world:must("DELETE", CONFIGMAPS .. "/owner", { propagationPolicy = "Foreground" })
    world.settle()
    assert.same({ "foregroundDeletion" }, world:must("GET", CONFIGMAPS .. "/owner").metadata.finalizers)
    assert.is_nil(world:must("GET", CONFIGMAPS .. "/child").metadata.deletionTimestamp)
  end)

  it("leaves the protection of a deleted claim", function()
    local claims = "/api/v1/namespaces/default/persistentvolumeclaims"
    world:must("POST", claims, {
      metadata = { name = "a" },
      spec = { accessModes = { "ReadWriteOnce" }, resources = { requests = { storage = "1Gi" } } },
    })
    world:must("DELETE", claims .. "/a")
    world.settle()
    assert.same({ "kubernetes.io/pvc-protection" }, world:must("GET", claims .. "/a").metadata.finalizers)
  end)

  it("forgets Events after an hour, as its storage would", function()
    local events = "/api/v1/namespaces/default/events"
    world:must("POST", events, {
      metadata = { name = "a" }, involvedObject = { kind = "ConfigMap", namespace = "default", name = "b" },
    })
    world:pass(3601)
    assert.equal(404, (world:call("GET", events .. "/a")))
  end)
end)
