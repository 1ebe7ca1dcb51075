-- PersistentVolumeClaims and their volumes, with pods that run nothing, in frozen time.
local persistentvolume_folders = require "cluster.controllers.persistentvolume_folders"
local host = require "cluster.host"
local testcluster = require "testcluster"
local testserver = require "testserver"

local CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
local CLAIM = CLAIMS .. "/data"
local VOLUMES = "/api/v1/persistentvolumes"
local POD = testcluster.PODS .. "/user"


local function claim(changes, name)
  local object = {
    metadata = { name = name or "data" },
    spec = { accessModes = { "ReadWriteOnce" }, resources = { requests = { storage = "1Gi" } } },
  }
  for key, value in pairs(changes or {}) do
    object.spec[key] = value
  end
  return object
end


local function volume(name, size, changes)
  local object = {
    metadata = { name = name, labels = { disk = name } },
    spec = {
      capacity = { storage = size }, accessModes = { "ReadWriteOnce" }, hostPath = { path = "/data/" .. name },
    },
  }
  for key, value in pairs(changes or {}) do
    object.spec[key] = value
  end
  return object
end


local function pod(changes)
  local object = {
    metadata = { name = "user" },
    spec = {
      containers = { { name = "c", image = "busybox:1" } },
      volumes = { { name = "v", persistentVolumeClaim = { claimName = "data" } } },
    },
  }
  for key, value in pairs(changes or {}) do
    object.spec[key] = value
  end
  return object
end


describe("A PersistentVolumeClaim", function()
  local cluster, removed

  before_each(function()
    removed = {}
    local folders = persistentvolume_folders.nowhere()
    local remove = folders.remove
    folders.path = "/volumes"
    function folders.remove(self, name)
      removed[#removed + 1] = name
      return remove(self, name)
    end
    cluster = testcluster.new(nil, folders)
  end)

  local function make(object)
    local path = object.spec.capacity and VOLUMES or object.spec.containers and testcluster.PODS or CLAIMS
    cluster:must("POST", path, object)
    cluster:pass(1)
  end

  local function read()
    return cluster:must("GET", CLAIM)
  end

  local function volumes()
    return testserver.names(cluster:must("GET", VOLUMES))
  end

  local function phase_of(name)
    return cluster:must("GET", VOLUMES .. "/" .. name).status.phase
  end

  local function delete(path)
    cluster:must("DELETE", path)
    cluster:pass(1)
  end

  describe("that no volume is there for", function()
    it("is bound to a folder of its own", function()
      make(claim())
      local data = read()
      local name = "pvc-" .. data.metadata.uid
      assert.equal(name, data.spec.volumeName)
      assert.same({ phase = "Bound", accessModes = { "ReadWriteOnce" }, capacity = { storage = "1Gi" } }, data.status)
      assert.equal("yes", data.metadata.annotations["pv.kubernetes.io/bind-completed"])
      assert.equal("yes", data.metadata.annotations["pv.kubernetes.io/bound-by-controller"])
      local made = cluster:must("GET", VOLUMES .. "/" .. name)
      assert.equal("Bound", made.status.phase)
      assert.equal("2026-01-01T00:00:00Z", made.status.lastPhaseTransitionTime)
      assert.equal("/volumes/" .. name, made.spec.hostPath.path)
      assert.equal(data.metadata.uid, made.spec.claimRef.uid)
      assert.same({ "Successfully provisioned volume " .. name }, cluster:messages("data", "ProvisioningSucceeded"))
    end)

    it("is so whatever its storage class is called", function()
      make(claim { storageClassName = "fast" })
      assert.equal("Bound", read().status.phase)
      assert.equal("fast", cluster:must("GET", VOLUMES).items[1].spec.storageClassName)
    end)

    it("waits when it asks for no storage class, and says so once", function()
      make(claim { storageClassName = "" })
      cluster:pass(60)
      assert.equal("Pending", read().status.phase)
      assert.same({ "no persistent volumes available for this claim and no storage class is set" },
        cluster:messages("data", "FailedBinding"))
      assert.same({}, volumes())
    end)

    for name, changes in pairs {
      ["a block device"] = { volumeMode = "Block" },
      ["a volume with labels"] = { selector = { matchLabels = { disk = "x" } } },
      ["the contents of another"] = { dataSource = { kind = "PersistentVolumeClaim", name = "other" } },
      ["a class of attributes"] = { volumeAttributesClassName = "gold" },
    } do
      it("waits when it asks for " .. name, function()
        make(claim(changes))
        assert.equal("Pending", read().status.phase)
        assert.equal(1, #cluster:messages("data", "ProvisioningFailed"))
      end)
    end

    it("grows with its volume", function()
      make(claim())
      cluster:change(CLAIM, { spec = { resources = { requests = { storage = "5Gi" } } } })
      cluster:pass(1)
      assert.equal("5Gi", read().status.capacity.storage)
      assert.equal("5Gi", cluster:must("GET", VOLUMES).items[1].spec.capacity.storage)
    end)
  end)

  it("does not change what a volume holds that somebody brought", function()
    make(volume("mine", "1Gi"))
    make(claim())
    cluster:change(CLAIM, { spec = { resources = { requests = { storage = "5Gi" } } } })
    cluster:pass(1)
    assert.equal("1Gi", cluster:must("GET", VOLUMES .. "/mine").spec.capacity.storage)
    assert.equal("1Gi", read().status.capacity.storage)
  end)

  describe("that a volume is there for", function()
    it("gets the smallest that is large enough", function()
      for name, size in pairs { small = "500Mi", fitting = "2Gi", large = "10Gi" } do
        make(volume(name, size))
        assert.equal("Available", phase_of(name))
      end
      make(claim())
      assert.equal("fitting", read().spec.volumeName)
      assert.equal("2Gi", read().status.capacity.storage)
      assert.equal("Bound", phase_of "fitting")
      assert.equal("Available", phase_of "large")
    end)

    it("gets it when it comes", function()
      make(claim { storageClassName = "" })
      make(volume("late", "1Gi"))
      assert.equal("late", read().spec.volumeName)
      assert.equal("Bound", read().status.phase)
    end)

    it("gets one with the labels, the class and the modes that it asks for", function()
      make(volume("plain", "1Gi"))
      make(volume("other", "1Gi", { storageClassName = "manual", accessModes = { "ReadOnlyMany" } }))
      make(volume("right", "1Gi", { storageClassName = "manual", accessModes = { "ReadWriteOnce", "ReadOnlyMany" } }))
      make(claim { storageClassName = "manual", selector = { matchLabels = { disk = "right" } } })
      assert.equal("right", read().spec.volumeName)
    end)

    it("gets the one that is reserved for its name", function()
      make(volume("any", "1Gi"))
      make(volume("mine", "9Gi", { claimRef = { namespace = "default", name = "data" } }))
      assert.equal("Available", phase_of "mine")
      make(claim())
      assert.equal("mine", read().spec.volumeName)
    end)

    it("does not get one that is reserved for another, who may come yet", function()
      make(volume("theirs", "1Gi", { claimRef = { namespace = "default", name = "other" } }))
      make(volume("elsewhere", "1Gi", { claimRef = { namespace = "kube-system", name = "data" } }))
      make(claim { storageClassName = "" })
      assert.equal("Pending", read().status.phase)
      assert.same({ "Available", "Available" }, { phase_of "theirs", phase_of "elsewhere" })
      make(claim({ storageClassName = "" }, "other"))
      assert.equal("Bound", phase_of "theirs")
    end)

    it("does not get one that is about to go", function()
      local going = volume("going", "1Gi")
      going.metadata.finalizers = { "example.com/kept" }
      make(going)
      delete(VOLUMES .. "/going")
      make(claim { storageClassName = "" })
      assert.equal("Pending", read().status.phase)
      make(claim({ volumeName = "going" }, "named"))
      assert.same({ 'Cannot bind to requested volume "going": the volume is marked for deletion "going"' },
        cluster:messages("named", "VolumeMismatch"))
    end)

    it("gets the one that it names, as soon as that is there", function()
      make(claim { volumeName = "mine" })
      assert.equal("Pending", read().status.phase)
      make(volume("mine", "3Gi"))
      assert.equal("Bound", read().status.phase)
      assert.equal("3Gi", read().status.capacity.storage)
      assert.is_nil(read().metadata.annotations["pv.kubernetes.io/bound-by-controller"])
    end)

    it("does not get one that it names and that will not do", function()
      make(volume("mine", "1Mi"))
      make(claim { volumeName = "mine" })
      assert.equal("Pending", read().status.phase)
      assert.same({ 'Cannot bind to requested volume "mine": requested PV is too small' },
        cluster:messages("data", "VolumeMismatch"))
    end)

    it("does not get one that another has", function()
      make(volume("mine", "1Gi"))
      make(claim({ volumeName = "mine" }, "first"))
      make(claim { volumeName = "mine" })
      assert.equal("Pending", read().status.phase)
      assert.same({ 'volume "mine" already bound to a different claim.' }, cluster:messages("data", "FailedBinding"))
    end)
  end)

  describe("that is deleted", function()
    it("takes along the folder that was made for it", function()
      make(claim())
      local name = read().spec.volumeName
      delete(CLAIM)
      assert.equal(404, (cluster:call("GET", CLAIM)))
      assert.same({}, volumes())
      assert.same({ name }, removed)
    end)

    it("leaves a volume behind that is retained, and nobody gets that any more", function()
      make(volume("mine", "1Gi"))
      make(claim())
      delete(CLAIM)
      assert.equal("Released", phase_of "mine")
      make(claim { storageClassName = "" })
      assert.equal("Pending", read().status.phase)
      cluster:change(VOLUMES .. "/mine", { spec = { claimRef = host.json.null } })
      cluster:pass(1)
      assert.equal("Bound", read().status.phase)
      assert.same({}, removed)
    end)

    for policy, reason in pairs { Delete = "VolumeFailedDelete", Recycle = "VolumeFailedRecycle" } do
      it(("does not touch a folder that is not its own: %s"):format(policy), function()
        make(volume("mine", "1Gi", { persistentVolumeReclaimPolicy = policy }))
        make(claim())
        delete(CLAIM)
        assert.equal("Failed", phase_of "mine")
        assert.same({}, removed)
        local told = {}
        for _, event in ipairs(cluster:must("GET", "/api/v1/events").items) do
          told[#told + 1] = event.involvedObject.name == "mine" and event.reason or nil
        end
        assert.same({ reason }, told)
      end)
    end

    for what, path in pairs {
      ["a path of the machine"] = "/home", ["the path above"] = "/volumes", ["a name of ours"] = "/volumes/mine",
    } do
      it("does not make a folder ours by an annotation and " .. what, function()
        local forged = volume("mine", "1Gi", {
          persistentVolumeReclaimPolicy = "Delete", hostPath = { path = path },
          claimRef = { namespace = "default", name = "gone", uid = "1" },
        })
        forged.metadata.annotations = { ["pv.kubernetes.io/provisioned-by"] = "moonloop.dev/folder" }
        make(forged)
        assert.equal("Failed", phase_of "mine")
        assert.equal("only volumes that were made here are deleted",
          cluster:must("GET", VOLUMES .. "/mine").status.message)
        assert.same({}, removed)
      end)
    end

    it("is none of a volume whose path goes up: that is refused", function()
      local code, answer = cluster:call("POST", VOLUMES, volume("mine", "1Gi", {
        hostPath = { path = "/volumes/../home" },
      }))
      assert.same({ 422, 'PersistentVolume "mine" is invalid: spec.hostPath.path: Invalid value: "/volumes/../home": '
        .. "must not contain '..'" }, { code, answer.message })
    end)

    it("stays as long as there is a pod that uses it, also when that has ended", function()
      make(claim())
      make(pod { restartPolicy = "Never" })
      delete(CLAIM)
      assert.truthy(read().metadata.deletionTimestamp)
      assert.equal("Bound", read().status.phase)
      assert.equal("Running", cluster:pod("user").status.phase)
      cluster.runtime:finish(cluster:pod "user", 0)
      cluster:pass(1)
      assert.equal("Succeeded", cluster:pod("user").status.phase)
      assert.equal("Bound", read().status.phase)
      delete(POD)
      assert.equal(404, (cluster:call("GET", CLAIM)))
      assert.same({}, volumes())
    end)

    it("does not wait for a pod that has no node", function()
      make(claim())
      make(pod { nodeSelector = { none = "here" } })
      delete(CLAIM)
      assert.equal(404, (cluster:call("GET", CLAIM)))
    end)

    it("is protected by a finalizer, and so is its volume while it is bound", function()
      make(claim())
      local name = read().spec.volumeName
      assert.same({ "kubernetes.io/pvc-protection" }, read().metadata.finalizers)
      delete(VOLUMES .. "/" .. name)
      assert.equal("Bound", phase_of(name))
      assert.equal("Bound", read().status.phase)
      delete(CLAIM)
      assert.same({}, volumes())
      assert.same({ name }, removed)
    end)
  end)

  it("is Lost without its volume", function()
    make(claim())
    local path = VOLUMES .. "/" .. read().spec.volumeName
    delete(path)
    cluster:change(path, { metadata = { finalizers = host.json.null } })
    cluster:pass(1)
    assert.equal("Lost", read().status.phase)
    assert.same({ "Bound claim has lost its PersistentVolume. Data on the volume is lost!" },
      cluster:messages("data", "ClaimLost"))
    make(pod())
    local scheduled = testcluster.condition(cluster:pod "user", "PodScheduled")
    assert.truthy(scheduled.message:find "bound to non%-existent persistentvolume")
  end)

  it("is Lost when its volume is given to another", function()
    make(volume("mine", "1Gi"))
    make(claim())
    cluster:change(VOLUMES .. "/mine", { spec = { claimRef = { name = "other", uid = "another" } } })
    cluster:change(CLAIM, { metadata = { labels = { looked = "at" } } })
    cluster:pass(1)
    assert.equal("Lost", read().status.phase)
    assert.equal("other", cluster:must("GET", VOLUMES .. "/mine").spec.claimRef.name)
    assert.equal(1, #cluster:messages("data", "ClaimMisbound"))
  end)

  describe("that a pod waits for", function()
    local function scheduled()
      return testcluster.condition(cluster:pod "user", "PodScheduled")
    end

    it("keeps it from a node, which its status and an Event say", function()
      make(claim { storageClassName = "" })
      make(pod())
      assert.equal("Pending", cluster:pod("user").status.phase)
      assert.is_nil(cluster:pod("user").spec.nodeName)
      assert.equal("False", scheduled().status)
      assert.equal("Unschedulable", scheduled().reason)
      local why = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."
      assert.equal(why, scheduled().message)
      assert.same({ why }, cluster:messages("user", "FailedScheduling"))
      cluster:pass(60)
      assert.equal("2026-01-01T00:00:01Z", scheduled().lastTransitionTime)
      make(volume("late", "1Gi"))
      assert.equal("Running", cluster:pod("user").status.phase)
    end)

    it("is missing: the pod runs when it is there", function()
      make(pod())
      assert.equal('0/1 nodes are available: persistentvolumeclaim "data" not found.', scheduled().message)
      make(claim())
      assert.equal("Running", cluster:pod("user").status.phase)
      assert.equal("True", scheduled().status)
    end)

    it("is about to go: the pod does not get it, and waits for the next of its name", function()
      make(claim())
      local first = pod()
      first.metadata.name = "first"
      make(first)
      delete(CLAIM)
      make(pod())
      assert.equal('0/1 nodes are available: persistentvolumeclaim "data" is being deleted.', scheduled().message)
      delete(testcluster.PODS .. "/first")
      assert.equal('0/1 nodes are available: persistentvolumeclaim "data" not found.', scheduled().message)
      make(claim())
      assert.equal("Running", cluster:pod("user").status.phase)
    end)
  end)
end)
