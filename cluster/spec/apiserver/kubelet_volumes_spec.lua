-- The volumes of a running pod: what of their sources they show, and when. Containers run nothing; files are in memory.
local empty_dirs = require "cluster.kubelet.empty_dirs"
local fake_runtime = require "cluster.kubelet.fake_runtime"
local host = require "cluster.host"
local hostlua = require "hostlua"
local jwt = require "cluster.apiserver.auth.jwt"
local kubelet = require "cluster.kubelet"
local testfolder = require "testfolder"
local testserver = require "testserver"
local volumes = require "cluster.kubelet.volumes"

local PODS = "/api/v1/namespaces/default/pods"
local SECRETS = "/api/v1/namespaces/default/secrets"
local EVENTS = "/api/v1/namespaces/default/events"
local CONFIGMAPS = testserver.CONFIGMAPS
local KEY = ("k"):rep(32)


-- A runtime whose containers have volumes in a folder in memory, and run until told to end.
local function new_runtime()
  local runtime = fake_runtime.new(function() end)
  local place = { base = testfolder.new(), path = "", folder = "", writers = {}, immutable = {} }
  local start = runtime.start
  runtime.place, runtime.writings = place, 0
  function runtime.start(self, run)
    local ok, why = volumes.each(place, run, function() return true end)
    if not ok then
      return nil, "CreateContainerConfigError", why
    end
    return start(self, run)
  end
  function runtime.update_volumes(_, run)
    runtime.writings = runtime.writings + 1
    return volumes.update(place, run)
  end
  return runtime
end


describe("The volumes of a pod that runs", function()
  local world, runtime, folder

  before_each(function()
    world, runtime = testserver.new { token_key = KEY }, new_runtime()
    folder = runtime.place.base
    kubelet.new(world.server, { runtime = runtime }):start()
    world:must("POST", "/api/v1/namespaces/default/serviceaccounts", { metadata = { name = "robot" } })
    world.settle()
  end)

  -- Starts a pod that mounts all these volumes.
  local function start(list, fields)
    local mounts = {}
    for i, volume in ipairs(list) do
      mounts[i] = { name = volume.name, mountPath = "/" .. volume.name }
    end
    local spec = { serviceAccountName = "robot", automountServiceAccountToken = false, volumes = list,
      containers = { { name = "c", image = "busybox", volumeMounts = mounts } } }
    for key, value in pairs(fields or {}) do
      spec[key] = value
    end
    world:must("POST", PODS, { metadata = { name = "p", labels = { app = "a" } }, spec = spec })
    world.settle()
    return world:must("GET", PODS .. "/p").metadata.uid
  end

  local function text(name)
    return folder:text("volumes/v/" .. name)
  end

  local function mode(name)
    return ("%o"):format(folder:at("volumes/v/" .. name).file_mode)
  end

  local function set(name, data)
    world:must("PUT", CONFIGMAPS .. "/" .. name, { metadata = { name = name }, data = data })
  end

  -- Second by second: what comes of one moment is done before the next.
  local function pass(seconds)
    for _ = 1, seconds do
      world:pass(1)
    end
  end

  local function mount_failures()
    local found = {}
    for _, event in ipairs(world:must("GET", EVENTS).items) do
      found[#found + 1] = event.reason == "FailedMount" and event.message or nil
    end
    return found
  end

  it("show a changed ConfigMap and Secret within a second", function()
    world:configmap("m", { data = { a = "1", gone = "x" } })
    world:must("POST", SECRETS, { metadata = { name = "s" }, stringData = { key = "old" } })
    start { { name = "v", configMap = { name = "m" } }, { name = "w", secret = { secretName = "s" } } }
    assert.equal("1", text "a")
    assert.equal("old", folder:text "volumes/w/key")
    set("m", { a = "2", b = "new" })
    world:patch("merge", SECRETS .. "/s", { stringData = { key = "new" } })
    world:pass(1)
    assert.equal("2", text "a")
    assert.equal("new", text "b")
    assert.is_nil(text "gone")
    assert.equal("new", folder:text "volumes/w/key")
  end)

  it("are written once a second when a ConfigMap changes a hundred times a second, and end at the last text", function()
    world:configmap("m", { data = { a = "0" } })
    start { { name = "v", configMap = { name = "m" } } }
    world:pass(2)
    runtime.writings = 0
    for i = 1, 1000 do
      set("m", { a = tostring(i) })
      world:pass(0.01)
    end
    assert.is_true(runtime.writings <= 11, runtime.writings)
    assert.is_true(tonumber(text "a") >= 850, text "a")
    world:pass(1)
    assert.equal("1000", text "a")
    local last = runtime.writings
    pass(60)
    assert.equal(last, runtime.writings)
  end)

  it("keep the files of a required source that is deleted, with Events that come less and less often", function()
    world:configmap("m", { data = { a = "1" } })
    world:configmap("other", { data = { b = "1" } })
    start { { name = "v", configMap = { name = "m" } }, { name = "w", configMap = { name = "other" } } }
    world:must("DELETE", CONFIGMAPS .. "/m")
    set("other", { b = "2" })
    world:pass(2)
    assert.equal("1", text "a")
    assert.equal("2", folder:text "volumes/w/b")
    assert.equal('MountVolume.SetUp failed for volume "v" : configmap "m" not found', mount_failures()[1])
    pass(600)
    local count = #mount_failures()
    assert.is_true(count > 8 and count < 15, count)
    world:configmap("m", { data = { a = "3" } })
    world:pass(1)
    assert.equal("3", text "a")
    pass(600)
    assert.equal(count, #mount_failures())
  end)

  it("show an optional source when it is made, and are empty when it goes", function()
    start { { name = "v", configMap = { name = "m", optional = true } } }
    assert.equal(2, #folder:names "volumes/v") -- ..data and its folder
    world:configmap("m", { data = { a = "1" } })
    world:pass(1)
    assert.equal("1", text "a")
    world:must("DELETE", CONFIGMAPS .. "/m")
    world:pass(1)
    assert.is_nil(text "a")
    assert.equal(2, #folder:names "volumes/v")
    assert.same({}, mount_failures())
  end)

  it("do not follow what is immutable", function()
    world:configmap("m", { data = { a = "1" }, immutable = true })
    start { { name = "v", configMap = { name = "m" } } }
    world:must("DELETE", CONFIGMAPS .. "/m")
    world:pass(1)
    world:configmap("m", { data = { a = "2" } })
    world:pass(1)
    assert.equal("1", text "a")
    assert.same({}, mount_failures())
  end)

  it("show the pod's labels and annotations as they are now", function()
    start { { name = "v", downwardAPI = { items = {
      { path = "labels", fieldRef = { fieldPath = "metadata.labels" } },
      { path = "deep/note", fieldRef = { fieldPath = "metadata.annotations['note']" } },
    } } } }
    assert.equal('app="a"', text "labels")
    world:patch("merge", PODS .. "/p", { metadata = { labels = { app = "b" }, annotations = { note = "n" } } })
    world:pass(1)
    assert.equal('app="b"', text "labels")
    assert.equal("n", text "deep/note")
  end)

  it("have the modes that are asked for, and are readable for the group of fsGroup", function()
    world:configmap("m", { data = { a = "1", b = "2" } })
    local source = { name = "m", defaultMode = 256, items = { { key = "a", path = "x/a" },
      { key = "b", path = "b", mode = 384 } } }
    start({ { name = "v", configMap = source } })
    assert.equal("400", mode "x/a")
    assert.equal("600", mode "b")
    assert.is_nil(text "a")
    world:must("DELETE", PODS .. "/p?gracePeriodSeconds=0")
    runtime.place.writers = {}
    start({ { name = "v", configMap = source } }, { securityContext = { fsGroup = 7 } })
    assert.equal("440", mode "x/a")
    assert.equal("640", mode "b")
  end)

  it("are told apart by their pods: one that has ended is written no more", function()
    world:configmap("m", { data = { a = "1" } })
    start { { name = "v", configMap = { name = "m" } } }
    world:must("DELETE", PODS .. "/p?gracePeriodSeconds=0")
    set("m", { a = "2" })
    world:pass(2)
    assert.equal("1", text "a")
  end)

  local function token_volume(seconds, audience)
    local token = { path = "token", expirationSeconds = seconds, audience = audience }
    return { name = "v", projected = { sources = { { serviceAccountToken = token } } } }
  end

  local function claims()
    return jwt.claims(text "token", KEY)
  end

  it("have a token for as long as was asked, renewed when four fifths of that are over", function()
    start { token_volume(600, "them") }
    local first, token = claims(), text "token"
    assert.equal(600, first.exp - first.iat)
    assert.same({ "them" }, first.aud)
    pass(465)
    assert.equal(token, text "token")
    pass(20)
    local second = claims()
    assert.not_equal(token, text "token")
    assert.is_true(second.iat < first.exp - 110 and second.exp - second.iat == 600)
  end)

  it("have a token renewed soon after a machine that slept has woken up", function()
    start { token_volume(600) }
    local token = text "token"
    hostlua.freeze(host.now() + 550)
    pass(61)
    assert.not_equal(token, text "token")
  end)

  it("have a token of many days renewed after one", function()
    start { token_volume(30 * 24 * 3600) }
    local token = text "token"
    world:pass(24 * 3600 - 20)
    assert.equal(token, text "token")
    pass(20)
    assert.not_equal(token, text "token")
  end)

  it("keep a token that cannot be renewed while it is good, and get one when that is possible again", function()
    start { token_volume(600) }
    local token = text "token"
    world:must("DELETE", "/api/v1/namespaces/default/serviceaccounts/robot")
    pass(500)
    assert.equal(token, text "token")
    assert.same({}, mount_failures())
    world:must("POST", "/api/v1/namespaces/default/serviceaccounts", { metadata = { name = "robot" } })
    pass(60)
    assert.not_equal(token, text "token")
    assert.is_true(host.now() < claims().exp)
  end)

  it("have tokens that only their user can read, where all containers have one", function()
    start({ token_volume(600) })
    assert.equal("644", mode "token")
    world:must("DELETE", PODS .. "/p?gracePeriodSeconds=0")
    runtime.place.writers = {}
    start({ token_volume(600) }, { securityContext = { runAsUser = 7 } })
    assert.equal("600", mode "token")
  end)

  -- Mounts an emptyDir at that path of it. @return string|nil the path, or nil and why not
  local function part_of(expression)
    local found
    local run = {
      pod = { metadata = { namespace = "ns" }, spec = { volumes = { { name = "v", emptyDir = {} } } } },
      container = { volumeMounts = { { name = "v", mountPath = "/v", subPathExpr = expression } } },
      variables = { POD = "p-1", EMPTY = "", ROOT = "/etc", UP = "../x" },
    }
    local ok, why = volumes.each(runtime.place, run, function(mount)
      found = mount.part
      return true
    end)
    return ok and found or nil, why
  end

  it("are mounted at the path that subPathExpr says with the container's variables", function()
    assert.equal("logs/p-1", part_of "logs/$(POD)")
    assert.equal("logs/$(POD)", part_of "logs/$$(POD)")
    local refused = {
      ["$(NONE)/$(EMPTY)/$(NONE)"] = "missing value for EMPTY, NONE",
      ["logs/$(EMPTY)"] = "missing value for EMPTY",
      ["$(ROOT)"] = "error SubPath `/etc` must not be an absolute path",
      ["a/$(UP)"] = "unable to provision SubPath `a/../x`: must not contain '..'",
    }
    for expression, wanted in pairs(refused) do
      local part, why = part_of(expression)
      assert.is_nil(part)
      assert.equal(wanted, why)
    end
  end)

  -- Why the pod's container waits, and its phase; "running" for one that does.
  local function waits()
    local status = world:must("GET", PODS .. "/p").status
    local state = status.containerStatuses[1].state
    return ("%s: %s"):format(status.phase, state.waiting and state.waiting.reason or "running")
  end

  it("keep it from starting while a ConfigMap, a Secret or a key is not there, with the kubelet's Events", function()
    world:configmap("short", { data = { a = "1" } })
    local no_key = { configMap = { name = "short", items = { { key = "b", path = "b" } } } }
    start {
      { name = "v", configMap = { name = "m" } },
      { name = "w", secret = { secretName = "s" } },
      { name = "x", projected = { sources = { no_key } } },
    }
    assert.equal("Pending: ContainerCreating", waits())
    local told = mount_failures()
    table.sort(told)
    assert.same({
      'MountVolume.SetUp failed for volume "v" : configmap "m" not found',
      'MountVolume.SetUp failed for volume "w" : secret "s" not found',
      'MountVolume.SetUp failed for volume "x" : configmap references non-existent config key: b',
    }, told)
    pass(600)
    assert.equal("Pending: ContainerCreating", waits())
    local count = #mount_failures()
    assert.is_true(count > 3 * 8 and count < 3 * 15, count)
    world:configmap("m", { data = { a = "late" } })
    world:must("POST", SECRETS, { metadata = { name = "s" }, stringData = { key = "late" } })
    pass(2)
    assert.equal("Pending: ContainerCreating", waits())
    set("short", { b = "late" })
    pass(2)
    assert.equal("Running: running", waits())
    assert.equal("late", text "a")
    for _, event in ipairs(world:must("GET", EVENTS).items) do
      assert.not_equal("Failed", event.reason)
    end
  end)

  it("keep its init containers from starting, too, but not one that no container mounts", function()
    local init = { { name = "i", image = "busybox" } }
    local unused = { { name = "v", configMap = { name = "m" } }, { name = "unused", configMap = { name = "other" } } }
    start(unused, { initContainers = init, containers = {
      { name = "c", image = "busybox", volumeMounts = { { name = "v", mountPath = "/v" } } },
    } })
    local statuses = world:must("GET", PODS .. "/p").status
    assert.equal("PodInitializing", statuses.initContainerStatuses[1].state.waiting.reason)
    world:configmap("m", { data = {} })
    pass(2)
    statuses = world:must("GET", PODS .. "/p").status
    assert.is_table(statuses.initContainerStatuses[1].state.running)
  end)

  it("keep it from starting while its claim is not there, or has no volume", function()
    start({ { name = "v", persistentVolumeClaim = { claimName = "data" } } }, { nodeName = "moonloop" })
    assert.equal("Pending: ContainerCreating", waits())
    local words = "Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process "
      .. "volumes=[v]: error processing PVC default/data: "
    assert.same({ words .. 'failed to fetch PVC from API server: persistentvolumeclaims "data" not found' },
      mount_failures())
    world:must("POST", "/api/v1/namespaces/default/persistentvolumeclaims", {
      metadata = { name = "data" },
      spec = { accessModes = { "ReadWriteOnce" }, resources = { requests = { storage = "1Mi" } } },
    })
    pass(2)
    assert.equal(words .. "PVC is not bound", mount_failures()[2])
    world:patch("merge", "/api/v1/namespaces/default/persistentvolumeclaims/data/status", {
      status = { phase = "Bound" } })
    pass(2)
    assert.equal("Pending: CreateContainerConfigError", waits()) -- nobody made the volume
  end)

  it("wait no more when it is deleted", function()
    start { { name = "v", configMap = { name = "m" } } }
    world:must("DELETE", PODS .. "/p")
    pass(1)
    assert.equal(404, (world:call("GET", PODS .. "/p")))
    local count = #mount_failures()
    pass(300)
    assert.equal(count, #mount_failures())
  end)

  it("emptyDirs are for everybody", function()
    start { { name = "v", emptyDir = {} } }
    assert.equal(511, folder:at("volumes/v").mode)
  end)
end)


describe("An emptyDir in memory", function()
  local MI = 1024 * 1024

  -- @param limits table of memory, of the containers; "" is none
  local function bytes(size, limits, allocatable)
    local containers = {}
    for i, limit in ipairs(limits) do
      containers[i] = { name = "c" .. i, resources = limit ~= "" and { limits = { memory = limit } } or nil }
    end
    local volume = { emptyDir = { medium = "Memory", sizeLimit = size } }
    return empty_dirs.bytes(volume, { spec = { containers = containers } }, allocatable)
  end

  it("may have the least of its sizeLimit, the limits of all containers, and the node", function()
    assert.equal(MI, bytes("1Mi", { "1Gi" }, "4Gi"))
    assert.equal(96 * MI, bytes("1Gi", { "64Mi", "32Mi" }, "4Gi"))
    assert.equal(1024 * MI, bytes("1Gi", { "64Mi", "" }, "4Gi"))
    assert.equal(4096 * MI, bytes(nil, { "" }, "4Gi"))
    assert.equal(4096 * MI, bytes("0", { "8Gi" }, "4Gi"))
    assert.equal(2, bytes("1500m", { "" }))
    assert.equal(0, bytes(nil, { "" }))
  end)

  it("counts a limit of the pod as a whole in place of the containers'", function()
    local pod = { spec = { resources = { limits = { memory = "16Mi" } }, containers = { { name = "c" } } } }
    assert.equal(16 * MI, empty_dirs.bytes({ emptyDir = { medium = "Memory" } }, pod, "1Gi"))
  end)

  it("is made for all of a pod's containers, with the mode that the pod asks for", function()
    local place = { base = testfolder.new(), path = "pods/u", folder = "/run/pods/u" }
    local pod = { spec = { containers = {}, securityContext = { fsGroup = 7 }, volumes = {
      { name = "disk", emptyDir = {} }, { name = "m", emptyDir = { medium = "Memory", sizeLimit = "1Mi" } },
    } } }
    assert.same({ { path = "/run/pods/u/volumes/m", mode = 1535, bytes = MI } },
      empty_dirs.in_memory(place, pod, function() end))
    assert.equal(1535, place.base:at("pods/u/volumes/m").mode)
    assert.is_false(place.base:has "pods/u/volumes/disk")
  end)
end)
