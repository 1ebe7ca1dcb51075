-- StatefulSets with the other controllers and pods that run nothing, in frozen time.
local host = require "cluster.host"
local testsets = require "testsets"

local PODS = testsets.PODS
local REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions"
local HASH = "controller-revision-hash"


describe("A StatefulSet", function()
  local cluster

  before_each(function()
    cluster = testsets.new()
  end)

  describe("makes pods", function()
    it("one after another, each when the one before it is ready", function()
      local seen = cluster:record()
      cluster:make()
      assert.same({ "+web-0", "ready web-0", "+web-1", "ready web-1", "+web-2", "ready web-2" }, seen)
    end)

    it("all at once under Parallel", function()
      local seen = cluster:record()
      cluster:make { podManagementPolicy = "Parallel" }
      assert.same({ "+web-0", "+web-1", "+web-2" }, { table.unpack(seen, 1, 3) })
      assert.equal(3, cluster:status().readyReplicas)
    end)

    it("each when the one before it has been ready for minReadySeconds", function()
      cluster:make { minReadySeconds = 20 }
      assert.same({ "web-0" }, cluster:present())
      assert.equal(1, cluster:status().readyReplicas)
      assert.equal(0, cluster:status().availableReplicas)
      cluster:pass(16)
      assert.same({ "web-0", "web-1" }, cluster:present())
      cluster:pass(50)
      assert.equal(3, cluster:status().availableReplicas)
    end)

    it("with a name, a hostname and labels that say which they are", function()
      cluster:make { ordinals = { start = 5 }, replicas = 2 }
      assert.same({ "web-5", "web-6" }, cluster:present())
      local pod = cluster:pod "web-6"
      assert.equal("web-6", pod.spec.hostname)
      assert.equal("web", pod.spec.subdomain)
      assert.equal("web-6", pod.metadata.labels["statefulset.kubernetes.io/pod-name"])
      assert.equal("6", pod.metadata.labels["apps.kubernetes.io/pod-index"])
      assert.equal(cluster:status().updateRevision, pod.metadata.labels[HASH])
    end)

    it("none behind one that does not become ready", function()
      cluster.missing_image = "busybox:1"
      cluster:make()
      cluster:pass(60)
      assert.same({ "web-0" }, cluster:present())
      assert.is_nil(cluster:status().readyReplicas)
    end)

    it("anew, with addresses that their Service tells of", function()
      cluster:must("POST", "/api/v1/namespaces/default/services", {
        metadata = { name = "web" },
        spec = { clusterIP = "None", selector = { app = "web" }, ports = { { port = 80 } } },
      })
      cluster:make { replicas = 1 }
      local before = cluster:pod "web-0"
      cluster:must("DELETE", PODS .. "/web-0")
      cluster:pass(60)
      local after = cluster:pod "web-0"
      assert.not_equal(before.metadata.uid, after.metadata.uid)
      assert.truthy(after.status.podIP)
      assert.same({ { ip = after.status.podIP } }, after.status.podIPs)
      assert.equal(before.status.hostIP, after.status.hostIP)
      local endpoints = cluster:must("GET", "/api/v1/namespaces/default/endpoints/web")
      assert.equal(after.status.podIP, endpoints.subsets[1].addresses[1].ip)
    end)

    it("and says why they are refused", function()
      local template = testsets.template(1)
      template.spec.serviceAccountName = "nobody"
      cluster:make { template = template }
      local message = cluster:messages("web", "FailedCreate")[1]
      assert.truthy(message:find("^Create Pod web%-0 in StatefulSet web failed error: "))
      assert.equal(0, cluster:status().replicas)
    end)
  end)

  describe("that is scaled", function()
    it("grows at its end and shrinks from there, one after another", function()
      cluster:make { replicas = 1 }
      local seen = cluster:record()
      cluster:set { replicas = 3 }
      assert.same({ "+web-1", "ready web-1", "+web-2", "ready web-2" }, seen)
      cluster:set { replicas = 0 }
      assert.same({ "-web-2", "-web-1", "-web-0" }, { table.unpack(seen, 5) })
      assert.equal(0, cluster:status().replicas)
    end)

    it("takes the next one away when the one before has gone, not sooner", function()
      cluster.is_deaf = true
      cluster:make()
      cluster:set { replicas = 1 }
      assert.same({ "web-0", "web-1" }, cluster:present())
      assert.equal(3, cluster:status().replicas)
      cluster.runtime:finish(cluster:pod "web-2", 0)
      cluster:pass(1)
      assert.same({ "web-0" }, cluster:present())
    end)

    it("takes them away together under Parallel", function()
      cluster.is_deaf = true
      cluster:make { podManagementPolicy = "Parallel" }
      cluster:set { replicas = 0 }
      assert.same({}, cluster:present())
      assert.equal(3, #cluster:pods())
    end)

    it("waits with that until those that stay are well", function()
      cluster:make()
      cluster.missing_image = "busybox:1"
      cluster:must("DELETE", PODS .. "/web-0")
      cluster:set { replicas = 1 }
      assert.same({ "web-0", "web-1", "web-2" }, cluster:present())
      cluster.missing_image = nil
      cluster:pass(60)
      assert.same({ "web-0" }, cluster:present())
    end)

    it("need not wait for the first that is not well among those that go", function()
      cluster:make()
      cluster.missing_image = "busybox:1"
      cluster:must("DELETE", PODS .. "/web-1")
      cluster:pass(5)
      cluster:set { replicas = 1 }
      assert.same({ "web-0" }, cluster:present())
    end)

    it("follows its subresource", function()
      cluster:make()
      cluster:change(testsets.SET .. "/scale", { spec = { replicas = 1 } })
      cluster:pass(10)
      assert.same({ "web-0" }, cluster:present())
      assert.equal(1, cluster:must("GET", testsets.SET .. "/scale").status.replicas)
    end)
  end)

  describe("with another template", function()
    it("renews its pods from the highest ordinal down, each when the one above is ready", function()
      cluster:make()
      local seen = cluster:record()
      cluster:roll_out(2)
      assert.same({
        "-web-2", "+web-2", "ready web-2", "-web-1", "+web-1", "ready web-1", "-web-0", "+web-0", "ready web-0",
      }, seen)
      assert.equal("2 2 2", cluster:versions())
    end)

    it("does the same under Parallel", function()
      cluster:make { podManagementPolicy = "Parallel" }
      local seen = cluster:record()
      cluster:roll_out(2)
      assert.same({ "-web-2", "+web-2", "ready web-2", "-web-1" }, { table.unpack(seen, 1, 4) })
      assert.equal("2 2 2", cluster:versions())
    end)

    it("says how far it is, and what it began from", function()
      cluster:make { updateStrategy = { rollingUpdate = { partition = 2 } } }
      local before = cluster:status()
      assert.equal(before.currentRevision, before.updateRevision)
      assert.same({ 3, 3, 3 }, { before.currentReplicas, before.updatedReplicas, before.availableReplicas })
      cluster:roll_out(2)
      local during = cluster:status()
      assert.equal(before.currentRevision, during.currentRevision)
      assert.not_equal(before.currentRevision, during.updateRevision)
      assert.same({ 2, 1 }, { during.currentReplicas, during.updatedReplicas })
      cluster:set { updateStrategy = { rollingUpdate = { partition = 0 } } }
      local after = cluster:status()
      assert.equal(during.updateRevision, after.currentRevision)
      assert.equal(during.updateRevision, after.updateRevision)
      assert.same({ 3, 3 }, { after.currentReplicas, after.updatedReplicas })
      assert.equal(cluster:must("GET", testsets.SET).metadata.generation, after.observedGeneration)
    end)

    it("leaves those below the partition as they are, also when they are made again", function()
      cluster:make { updateStrategy = { rollingUpdate = { partition = 2 } } }
      cluster:roll_out(2)
      assert.equal("1 1 2", cluster:versions())
      cluster:must("DELETE", PODS)
      cluster:pass(10)
      assert.equal("1 1 2", cluster:versions())
      assert.not_equal(cluster:pod("web-0").metadata.labels[HASH], cluster:pod("web-2").metadata.labels[HASH])
    end)

    it("counts the partition from the first of its ordinals", function()
      cluster:make { ordinals = { start = 5 }, updateStrategy = { rollingUpdate = { partition = 2 } } }
      cluster:roll_out(2)
      assert.equal("1 1 2", cluster:versions())
      cluster:must("DELETE", PODS)
      cluster:pass(10)
      assert.equal("1 1 2", cluster:versions())
    end)

    it("stops at a pod that does not become ready", function()
      cluster:make()
      cluster.missing_image = "busybox:2"
      cluster:roll_out(2)
      cluster:pass(60)
      assert.equal("1 1 2", cluster:versions())
      assert.equal(2, cluster:status().readyReplicas)
    end)

    for versions, strategy in pairs {
      ["1 1 2"] = { type = "RollingUpdate" }, -- no partition at all: those that were not renewed yet are as they were
      ["2 1 2"] = { type = "RollingUpdate", rollingUpdate = { partition = 0 } },
    } do
      it(("makes pods again that are deleted meanwhile: %s"):format(versions), function()
        cluster:make { updateStrategy = strategy }
        cluster.missing_image = "busybox:2"
        cluster:roll_out(2)
        cluster:must("DELETE", PODS .. "/web-0")
        cluster:pass(5)
        assert.equal(versions, cluster:versions())
      end)
    end

    it("under Parallel goes on when the broken template is mended", function()
      cluster:make { podManagementPolicy = "Parallel" }
      cluster.missing_image = "busybox:2"
      cluster:roll_out(2)
      cluster:roll_out(3)
      cluster:pass(10)
      assert.equal("3 3 3", cluster:versions())
    end)

    it("in order waits until the broken pod is deleted", function()
      cluster:make()
      cluster.missing_image = "busybox:2"
      cluster:roll_out(2)
      cluster:roll_out(3)
      assert.equal("1 1 2", cluster:versions())
      cluster:must("DELETE", PODS .. "/web-2")
      cluster:pass(20)
      assert.equal("3 3 3", cluster:versions())
    end)

    it("renews nothing under OnDelete but what is deleted", function()
      cluster:make { updateStrategy = { type = "OnDelete" } }
      local before = cluster:status().currentRevision
      cluster:roll_out(2)
      assert.equal("1 1 1", cluster:versions())
      cluster:must("DELETE", PODS .. "/web-1")
      cluster:pass(10)
      assert.equal("1 2 1", cluster:versions())
      cluster:must("DELETE", PODS)
      cluster:pass(10)
      assert.equal("2 2 2", cluster:versions())
      assert.equal(before, cluster:status().currentRevision)
      assert.equal(3, cluster:status().updatedReplicas)
    end)

    for _, policy in ipairs { "OrderedReady", "Parallel" } do
      it("waits minReadySeconds behind each pod: " .. policy, function()
        cluster:make { replicas = 2, minReadySeconds = 15, podManagementPolicy = policy }
        cluster:pass(30)
        cluster:roll_out(2)
        assert.equal("1 2", cluster:versions())
        cluster:pass(10)
        assert.equal("2 2", cluster:versions())
      end)
    end
  end)

  describe("keeps its templates", function()
    -- The numbers of the revisions there are.
    local function numbers()
      local list = {}
      for i, revision in ipairs(cluster:must("GET", REVISIONS).items) do
        list[i] = revision.revision
      end
      table.sort(list)
      return list
    end

    it("as revisions with a number, its own annotations and the labels of its pods", function()
      cluster:make({}, { why = "first" })
      local revision = cluster:must("GET", REVISIONS).items[1]
      assert.equal(cluster:status().updateRevision, revision.metadata.name)
      assert.equal(1, revision.revision)
      assert.equal("first", revision.metadata.annotations.why)
      assert.equal("web", revision.metadata.labels.app)
      assert.equal(revision.metadata.name, "web-" .. revision.metadata.labels["controller.kubernetes.io/hash"])
      assert.equal("busybox:1", revision.data.spec.template.spec.containers[1].image)
    end)

    it("and takes up an old one again under a new number", function()
      cluster:make()
      local first = cluster:status().updateRevision
      cluster:roll_out(2)
      cluster:roll_out(1)
      assert.equal(first, cluster:status().updateRevision)
      assert.equal(3, cluster:must("GET", REVISIONS .. "/" .. first).revision)
      assert.equal(2, #cluster:must("GET", REVISIONS).items)
    end)

    it("as many old ones as revisionHistoryLimit says, beside those in use", function()
      cluster:make { revisionHistoryLimit = 1 }
      for n = 2, 5 do
        cluster:roll_out(n)
      end
      assert.same({ 4, 5 }, numbers())
    end)

    it("and in any case those that one of its pods has", function()
      cluster:make { revisionHistoryLimit = 0, updateStrategy = { type = "OnDelete" } }
      cluster:roll_out(2)
      cluster:must("DELETE", PODS .. "/web-1")
      cluster:pass(10)
      cluster:roll_out(3)
      cluster:roll_out(4)
      assert.equal("1 2 1", cluster:versions())
      assert.same({ 1, 2, 4 }, numbers())
    end)
  end)

  describe("makes a pod again", function()
    it("that was deleted, under its name, when it has gone", function()
      cluster.is_deaf = true
      cluster:make()
      local old = cluster:pod "web-1"
      cluster:must("DELETE", PODS .. "/web-1")
      cluster:pass(10)
      assert.equal(old.metadata.uid, cluster:pod("web-1").metadata.uid)
      cluster.runtime:finish(old, 0)
      cluster:pass(5)
      assert.not_equal(old.metadata.uid, cluster:pod("web-1").metadata.uid)
      assert.equal(3, cluster:status().readyReplicas)
    end)

    for _, phase in ipairs { "Failed", "Succeeded" } do
      it("that has ended: " .. phase, function()
        cluster:make()
        local old = cluster:pod "web-1"
        cluster:change(PODS .. "/web-1/status", { status = { phase = phase } })
        cluster:pass(5)
        assert.not_equal(old.metadata.uid, cluster:pod("web-1").metadata.uid)
        assert.equal(3, cluster:status().readyReplicas)
      end)
    end

    it("that lost the labels of its selector, once that has left the name", function()
      cluster:make { replicas = 1 }
      cluster:change(PODS .. "/web-0", { metadata = { labels = { app = "aside" } } })
      cluster:pass(5)
      assert.is_nil(cluster:pod("web-0").metadata.ownerReferences)
      assert.equal(0, cluster:status().replicas)
      cluster:must("DELETE", PODS .. "/web-0")
      cluster:pass(60)
      assert.equal("web", cluster:pod("web-0").metadata.labels.app)
    end)

    it("but only gives back the label that is its name", function()
      cluster:make { replicas = 1 }
      local old = cluster:pod "web-0"
      cluster:change(PODS .. "/web-0", { metadata = { labels = {
        ["statefulset.kubernetes.io/pod-name"] = host.json.null } } })
      cluster:pass(1)
      local pod = cluster:pod "web-0"
      assert.equal(old.metadata.uid, pod.metadata.uid)
      assert.equal("web-0", pod.metadata.labels["statefulset.kubernetes.io/pod-name"])
    end)
  end)

  it("adopts pods that have its labels and one of its names, no others", function()
    for _, name in ipairs { "web-0", "other" } do
      cluster:must("POST", PODS, {
        metadata = { name = name, labels = { app = "web" } }, spec = testsets.template(1).spec,
      })
    end
    cluster:make { replicas = 1, updateStrategy = { type = "OnDelete" } }
    assert.equal("web", cluster:pod("web-0").metadata.ownerReferences[1].name)
    assert.is_nil(cluster:pod("other").metadata.ownerReferences)
    assert.equal(1, cluster:status().replicas)
  end)

  it("adopts no pod that is about to go", function()
    cluster.is_deaf = true
    cluster:must("POST", PODS, {
      metadata = { name = "web-7", labels = { app = "web" } }, spec = testsets.template(1).spec,
    })
    cluster:pass(1)
    cluster:must("DELETE", PODS .. "/web-7")
    cluster:make { replicas = 1 }
    assert.is_nil(cluster:pod("web-7").metadata.ownerReferences)
    assert.equal(1, cluster:status().replicas)
  end)

  it("that is about to go takes back no pod that it is to leave behind", function()
    cluster:make { replicas = 1 }
    cluster:change(testsets.SET, { metadata = { finalizers = { "example.com/kept" } } })
    cluster:must("DELETE", testsets.SET .. "?propagationPolicy=Orphan")
    cluster:pass(5)
    assert.is_nil(cluster:pod("web-0").metadata.ownerReferences)
    cluster:change(testsets.SET, { metadata = { finalizers = host.json.null } })
    cluster:pass(60)
    assert.same({ "web-0" }, cluster:present())
  end)

  it("makes no pod while it is deleted with them", function()
    cluster:make()
    cluster:change(PODS .. "/web-1", { metadata = { finalizers = { "example.com/kept" } } })
    cluster:must("DELETE", testsets.SET .. "?propagationPolicy=Foreground")
    cluster:pass(5)
    assert.same({}, cluster:present())
    assert.equal(1, #cluster:pods())
    cluster:change(PODS .. "/web-1", { metadata = { finalizers = host.json.null } })
    cluster:pass(5)
    assert.equal(404, (cluster:call("GET", testsets.SET)))
  end)

  for _, policy in ipairs { "Background", "Foreground" } do
    it("takes its pods and revisions along when it is deleted: " .. policy, function()
      cluster:make()
      cluster:must("DELETE", testsets.SET .. "?propagationPolicy=" .. policy)
      cluster:pass(60)
      assert.equal(404, (cluster:call("GET", testsets.SET)))
      assert.same({}, cluster:pods())
      assert.same({}, cluster:must("GET", REVISIONS).items)
    end)
  end
end)
