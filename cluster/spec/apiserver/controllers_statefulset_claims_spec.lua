-- The claims that StatefulSets make for their pods, and who they go with.
local testserver = require "testserver"
local testsets = require "testsets"

local PODS = testsets.PODS
local CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"


local function claim_template(name)
  return {
    metadata = { name = name, annotations = { note = "kept" } },
    spec = { accessModes = { "ReadWriteOnce" }, resources = { requests = { storage = "1Gi" } } },
  }
end


describe("A StatefulSet with volumeClaimTemplates", function()
  local cluster

  before_each(function()
    cluster = testsets.new()
  end)

  local function claims()
    return testserver.names(cluster:must("GET", CLAIMS))
  end

  it("makes claims before the pod and mounts them in it", function()
    cluster:make { replicas = 2, volumeClaimTemplates = { claim_template "data", claim_template "logs" } }
    assert.same({ "data-web-0", "data-web-1", "logs-web-0", "logs-web-1" }, claims())
    local claim = cluster:must("GET", CLAIMS .. "/data-web-1")
    assert.same({ app = "web" }, claim.metadata.labels)
    assert.equal("kept", claim.metadata.annotations.note)
    assert.is_nil(claim.metadata.ownerReferences)
    assert.same({
      { name = "data", persistentVolumeClaim = { claimName = "data-web-1" } },
      { name = "logs", persistentVolumeClaim = { claimName = "logs-web-1" } },
    }, { table.unpack(cluster:pod("web-1").spec.volumes, 1, 2) })
    assert.equal(2, cluster:status().readyReplicas)
  end)

  it("keeps them when it shrinks and when it is deleted, and finds them again", function()
    cluster:make { volumeClaimTemplates = { claim_template "data" } }
    local uid = cluster:must("GET", CLAIMS .. "/data-web-2").metadata.uid
    cluster:set { replicas = 1 }
    assert.equal(3, #claims())
    cluster:must("DELETE", testsets.SET)
    cluster:pass(60)
    assert.equal(3, #claims())
    cluster:make { volumeClaimTemplates = { claim_template "data" } }
    assert.equal(uid, cluster:must("GET", CLAIMS .. "/data-web-2").metadata.uid)
    assert.equal(3, cluster:status().readyReplicas)
  end)

  it("with whenScaled Delete lets go of those of the pods that go", function()
    cluster:make {
      volumeClaimTemplates = { claim_template "data" },
      persistentVolumeClaimRetentionPolicy = { whenScaled = "Delete" },
    }
    cluster:set { replicas = 1 }
    cluster:pass(30)
    assert.same({ "data-web-0" }, claims())
    cluster:must("DELETE", testsets.SET)
    cluster:pass(60)
    assert.same({ "data-web-0" }, claims())
  end)

  it("with whenScaled Delete makes new ones when it grows again at once", function()
    cluster:make {
      volumeClaimTemplates = { claim_template "data" },
      persistentVolumeClaimRetentionPolicy = { whenScaled = "Delete" },
    }
    local uid = cluster:must("GET", CLAIMS .. "/data-web-2").metadata.uid
    cluster:change(testsets.SET, { spec = { replicas = 2 } })
    cluster.settle()
    cluster:set { replicas = 3 }
    cluster:pass(60)
    assert.not_equal(uid, cluster:must("GET", CLAIMS .. "/data-web-2").metadata.uid)
    assert.equal(3, cluster:status().readyReplicas)
  end)

  it("with whenDeleted Delete lets go of all of them with itself", function()
    cluster:make {
      volumeClaimTemplates = { claim_template "data" },
      persistentVolumeClaimRetentionPolicy = { whenDeleted = "Delete" },
    }
    cluster:set { replicas = 2 }
    assert.equal(3, #claims())
    cluster:must("DELETE", testsets.SET)
    cluster:pass(60)
    assert.same({}, claims())
  end)

  it("follows a change of that policy", function()
    cluster:make { replicas = 1, volumeClaimTemplates = { claim_template "data" } }
    cluster:set { persistentVolumeClaimRetentionPolicy = { whenDeleted = "Delete" } }
    assert.equal("web", cluster:must("GET", CLAIMS .. "/data-web-0").metadata.ownerReferences[1].name)
    cluster:set { persistentVolumeClaimRetentionPolicy = { whenDeleted = "Retain" } }
    assert.is_nil(cluster:must("GET", CLAIMS .. "/data-web-0").metadata.ownerReferences)
  end)

  it("leaves a claim to who controls it already", function()
    local boss = cluster:configmap "boss"
    local references = { {
      apiVersion = "v1", kind = "ConfigMap", name = "boss", uid = boss.metadata.uid, controller = true,
    } }
    local claim = claim_template "data-web-0"
    claim.metadata.ownerReferences = references
    cluster:must("POST", CLAIMS, claim)
    cluster:make {
      replicas = 1, volumeClaimTemplates = { claim_template "data" },
      persistentVolumeClaimRetentionPolicy = { whenDeleted = "Delete" },
    }
    assert.equal(1, cluster:status().readyReplicas)
    assert.same(references, cluster:must("GET", CLAIMS .. "/data-web-0").metadata.ownerReferences)
    assert.same({}, cluster:messages("web", "FailedCreate"))
  end)

  it("makes a claim again that was deleted, with the pod that had it", function()
    cluster:make { replicas = 1, volumeClaimTemplates = { claim_template "data" } }
    local uid = cluster:must("GET", CLAIMS .. "/data-web-0").metadata.uid
    cluster:must("DELETE", CLAIMS .. "/data-web-0")
    cluster:pass(1)
    assert.equal(uid, cluster:must("GET", CLAIMS .. "/data-web-0").metadata.uid)
    cluster:must("DELETE", PODS .. "/web-0")
    cluster:pass(60)
    assert.not_equal(uid, cluster:must("GET", CLAIMS .. "/data-web-0").metadata.uid)
    assert.equal(1, cluster:status().readyReplicas)
  end)
end)
