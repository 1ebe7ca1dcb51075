local testserver = require "testserver"
local NULL = require("cluster.host").json.null

local PATH = testserver.CONFIGMAPS


describe("deletion", function()
  local world
  before_each(function() world = testserver.new() end)

  local function is_there(name)
    return world:send("GET", PATH .. "/" .. name).code == 200
  end

  it("answers with what is gone", function()
    local made = world:configmap "a"
    local answer = world:must("DELETE", PATH .. "/a")
    assert.equal("Success", answer.status)
    assert.equal(made.metadata.uid, answer.details.uid)
    assert.equal(404, (world:call("DELETE", PATH .. "/a")))
  end)

  for _, case in ipairs {
    { 409, { preconditions = { uid = "other" } } }, { 409, { preconditions = { resourceVersion = "1" } } },
    { 422, { propagationPolicy = "Strange" } }, { 422, { propagationPolicy = "Orphan", orphanDependents = true } },
    { 422, { dryRun = { "Some" } } }, { 400, { kind = "Strange" } }, { 400, "{" },
  } do
    it("is refused with " .. case[1], function()
      world:configmap "a"
      assert.equal(case[1], (world:call("DELETE", PATH .. "/a", case[2])))
      assert.is_true(is_there "a")
    end)
  end

  it("waits for finalizers", function()
    world:configmap("a", { metadata = { finalizers = { "example.com/hold" } } })
    local answer = world:must("DELETE", PATH .. "/a")
    assert.equal("2026-01-01T00:00:00Z", answer.metadata.deletionTimestamp)
    assert.same(answer, world:must("DELETE", PATH .. "/a"))
    local more = { metadata = { finalizers = { "example.com/hold", "example.com/x" } } }
    assert.equal(422, (world:patch("merge", PATH .. "/a", more)))
    assert.equal(200, (world:patch("merge", PATH .. "/a", { metadata = { finalizers = NULL } })))
    assert.is_false(is_there "a")
  end)

  it("takes a collection, as far as it is selected", function()
    for i = 1, 3 do
      world:configmap("c" .. i, { metadata = { labels = { odd = tostring(i % 2 == 1) } } })
    end
    local list = world:must("DELETE", PATH .. "?labelSelector=odd%3Dtrue")
    assert.same({ "c1", "c3" }, testserver.names(list))
    assert.same({ false, true, false }, { is_there "c1", is_there "c2", is_there "c3" })
  end)

  it("gives pods that run their time", function()
    local pods = "/api/v1/namespaces/default/pods"
    local pod = { metadata = { name = "p" }, spec = { nodeName = "n", containers = { { name = "c", image = "i" } } } }
    world:must("POST", pods, pod)
    local first = world:must("DELETE", pods .. "/p")
    assert.equal(30, first.metadata.deletionGracePeriodSeconds)
    assert.equal("2026-01-01T00:00:30Z", first.metadata.deletionTimestamp)
    local longer = world:must("DELETE", pods .. "/p", { gracePeriodSeconds = 60 })
    assert.equal(30, longer.metadata.deletionGracePeriodSeconds)
    local shorter = world:must("DELETE", pods .. "/p", { gracePeriodSeconds = 5 })
    assert.equal("2026-01-01T00:00:05Z", shorter.metadata.deletionTimestamp)
    world:must("DELETE", pods .. "/p", { gracePeriodSeconds = 0 })
    assert.equal(404, (world:call("GET", pods .. "/p")))
  end)

  for _, seconds in ipairs { 0, 5, 60 } do
    it(("gives pods that run the time that it asks for: %d s"):format(seconds), function()
      local pods = "/api/v1/namespaces/default/pods"
      world:must("POST", pods, {
        metadata = { name = "p" }, spec = { nodeName = "n", containers = { { name = "c", image = "i" } } },
      })
      local answer = world:must("DELETE", ("%s/p?gracePeriodSeconds=%d"):format(pods, seconds))
      assert.equal(seconds, answer.metadata.deletionGracePeriodSeconds)
      assert.equal(seconds > 0 and 200 or 404, (world:call("GET", pods .. "/p")))
    end)
  end

  describe("of owners", function()
    local function owned(name, owner, block)
      return world:configmap(name, { metadata = { ownerReferences = { {
        apiVersion = "v1", kind = "ConfigMap", name = owner.metadata.name, uid = owner.metadata.uid,
        blockOwnerDeletion = block,
      } } } })
    end

    it("takes dependents along, later", function()
      local a = world:configmap "a"
      owned("c", owned("b", a))
      world:must("DELETE", PATH .. "/a")
      assert.is_true(is_there "b")
      world.settle()
      assert.same({ false, false }, { is_there "b", is_there "c" })
    end)

    it("waits for dependents in the foreground", function()
      local a = world:configmap "a"
      owned("b", a, true)
      world:patch("merge", PATH .. "/b", { metadata = { finalizers = { "example.com/hold" } } })
      local answer = world:must("DELETE", PATH .. "/a", { propagationPolicy = "Foreground" })
      assert.same({ "foregroundDeletion" }, answer.metadata.finalizers)
      world.settle()
      assert.same({ true, true }, { is_there "a", is_there "b" })
      world:patch("merge", PATH .. "/b", { metadata = { finalizers = NULL } })
      world.settle()
      assert.same({ false, false }, { is_there "a", is_there "b" })
    end)

    it("lets dependents go", function()
      local a = world:configmap "a"
      owned("b", a, true)
      world:must("DELETE", PATH .. "/a", { propagationPolicy = "Orphan" })
      world.settle()
      assert.is_false(is_there "a")
      assert.is_nil(world:must("GET", PATH .. "/b").metadata.ownerReferences)
    end)

    it("leaves what has another owner", function()
      local a, b = world:configmap "a", world:configmap "b"
      local made = owned("c", a)
      local owners = made.metadata.ownerReferences
      owners[2] = { apiVersion = "v1", kind = "ConfigMap", name = "b", uid = b.metadata.uid }
      world:patch("merge", PATH .. "/c", { metadata = { ownerReferences = owners } })
      world:must("DELETE", PATH .. "/a")
      world.settle()
      local left = world:must("GET", PATH .. "/c").metadata.ownerReferences
      assert.same({ 1, "b" }, { #left, left[1].name })
      world:must("DELETE", PATH .. "/b")
      world.settle()
      assert.is_false(is_there "c")
    end)

    it("takes what names an owner whose name another one has by now", function()
      local former = world:configmap "a"
      local made = owned("b", former)
      world:must("DELETE", PATH .. "/a", { propagationPolicy = "Orphan" })
      world.settle()
      world:configmap "a"
      world:patch("merge", PATH .. "/b", { metadata = { ownerReferences = made.metadata.ownerReferences } })
      world.settle()
      assert.same({ true, false }, { is_there "a", is_there "b" })
    end)

    it("takes what names an owner that never was, not one of an unknown kind", function()
      owned("a", { metadata = { name = "nobody", uid = "none" } })
      local unknown = { apiVersion = "x/v1", kind = "X", name = "x", uid = "x" }
      world:configmap("b", { metadata = { ownerReferences = { unknown } } })
      world.settle()
      assert.same({ false, true }, { is_there "a", is_there "b" })
    end)

    it("breaks a circle", function()
      local a = world:configmap "a"
      local b = owned("b", a, true)
      world:patch("merge", PATH .. "/a", { metadata = { ownerReferences = { {
        apiVersion = "v1", kind = "ConfigMap", name = "b", uid = b.metadata.uid, blockOwnerDeletion = true,
      } } } })
      world:must("DELETE", PATH .. "/a", { propagationPolicy = "Foreground" })
      world.settle()
      assert.same({ false, false }, { is_there "a", is_there "b" })
    end)
  end)
end)


describe("namespaces", function()
  local world
  before_each(function() world = testserver.new { ca = "PEM" } end)

  it("are there from the start, with what controllers put into them", function()
    assert.same({ "default", "kube-node-lease", "kube-public", "kube-system" },
      testserver.names(world:must("GET", "/api/v1/namespaces")))
    assert.same({ ["ca.crt"] = "PEM" }, world:must("GET", testserver.CONFIGMAPS .. "/kube-root-ca.crt").data)
    world:must("POST", "/api/v1/namespaces", { metadata = { name = "work" } })
    world.settle()
    assert.equal(200, (world:call("GET", "/api/v1/namespaces/work/serviceaccounts/default")))
    world:must("DELETE", "/api/v1/namespaces/work/configmaps/kube-root-ca.crt")
    world.settle()
    assert.equal(200, (world:call("GET", "/api/v1/namespaces/work/configmaps/kube-root-ca.crt")))
  end)

  it("have a certificate that becomes known only later", function()
    world.server:publish_authority "NEW"
    assert.same({ ["ca.crt"] = "NEW" }, world:must("GET", testserver.CONFIGMAPS .. "/kube-root-ca.crt").data)
    local trusted = world:must("GET", "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication")
    assert.same({ ["client-ca-file"] = "PEMNEW" }, trusted.data)
  end)

  it("have the authority for servers of extensions, again when it was deleted", function()
    local path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
    world:must("DELETE", path)
    world.settle()
    assert.same({ ["client-ca-file"] = "PEM" }, world:must("GET", path).data)
    assert.equal(404, testserver.new():call("GET", path))
  end)

  it("must be there for what is in them", function()
    local code, answer = world:call("POST", "/api/v1/namespaces/none/configmaps", { metadata = { name = "a" } })
    assert.same({ 404, 'namespaces "none" not found' }, { code, answer.message })
  end)

  it("that the system needs cannot go", function()
    local code, answer = world:call("DELETE", "/api/v1/namespaces/kube-system")
    assert.equal(403, code)
    assert.equal('namespaces "kube-system" is forbidden: this namespace may not be deleted', answer.message)
    assert.equal(200, (world:call("DELETE", "/api/v1/namespaces/kube-node-lease")))
  end)

  it("go with all they hold, when nothing holds them up", function()
    local work = "/api/v1/namespaces/work"
    world:must("POST", "/api/v1/namespaces", { metadata = { name = "work" } })
    world:must("POST", work .. "/configmaps", { metadata = { name = "held", finalizers = { "example.com/hold" } } })
    world:must("POST", work .. "/secrets", { metadata = { name = "free" } })
    assert.equal("Terminating", world:must("DELETE", work).status.phase)
    assert.equal(403, (world:call("POST", work .. "/configmaps", { metadata = { name = "late" } })))
    world.settle()
    assert.equal(404, (world:call("GET", work .. "/secrets/free")))
    local told = {}
    for _, condition in ipairs(world:must("GET", work).status.conditions) do
      told[condition.type] = condition.message
    end
    assert.equal("Some resources are remaining: configmaps. has 1 resource instances", told.NamespaceContentRemaining)
    assert.equal("Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
      told.NamespaceFinalizersRemaining)
    world:patch("merge", work .. "/configmaps/held", { metadata = { finalizers = NULL } })
    world.settle()
    assert.equal(404, (world:call("GET", work)))
  end)
end)


describe("events", function()
  it("go an hour after they were last written", function()
    local world = testserver.new()
    local path = "/api/v1/namespaces/default/events"
    for _, name in ipairs { "a", "b" } do
      world:must("POST", path, {
        metadata = { name = name }, involvedObject = { kind = "Pod", name = "p", namespace = "default" }, reason = "R",
        message = "m", type = "Normal",
      })
    end
    world:pass(1800)
    assert.equal(200, (world:patch("merge", path .. "/b", { message = "again" })))
    world:pass(1801)
    assert.same({ 404, 200 }, { world:send("GET", path .. "/a").code, world:send("GET", path .. "/b").code })
    world:pass(1800)
    assert.equal(404, world:send("GET", path .. "/b").code)
  end)
end)
