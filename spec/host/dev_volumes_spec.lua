-- Volumes of claims in moonloop dev: folders below its own, and no folder that an object names.
local dev = require "spec.host.support.dev"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
local PODS = "/api/v1/namespaces/default/pods"
local VOLUMES = "/api/v1/persistentvolumes"
local OURS = { ["pv.kubernetes.io/provisioned-by"] = "moonloop.dev/folder" }


local function claim(name, volume)
  return {
    metadata = { name = name },
    spec = {
      accessModes = { "ReadWriteOnce" }, resources = { requests = { storage = "1Gi" } }, volumeName = volume,
      storageClassName = volume and "" or nil,
    },
  }
end


-- A volume that says it was made here.
local function forged(name, path, ref)
  return {
    metadata = { name = name, annotations = OURS },
    spec = {
      capacity = { storage = "1Gi" }, accessModes = { "ReadWriteOnce" }, hostPath = { path = path },
      persistentVolumeReclaimPolicy = "Delete", claimRef = ref,
    },
  }
end


local function gone(uid)
  return { namespace = "default", name = "gone", uid = uid }
end


local function pod(name, claim_name, script)
  return {
    metadata = { name = name },
    spec = {
      restartPolicy = "Never",
      containers = { {
        name = "c", image = "busybox", command = { "sh", "-c", script },
        volumeMounts = { { name = "v", mountPath = "vol" } },
      } },
      volumes = { { name = "v", persistentVolumeClaim = { claimName = claim_name } } },
    },
  }
end


describe("moonloop dev", function()
  local data, server, precious
  after_each(dev.stop_all)

  local function till(what, fn)
    return wait.till(what, 20, fn)
  end

  local function phase(path)
    local object = server:get(path)
    return object and object.status.phase
  end

  local function start()
    server = dev.start { "--data", data }
    till("the account", function() return server:get "/api/v1/namespaces/default/serviceaccounts/default" end)
  end

  local function is_kept()
    return select(2, shell.run(("test -s %s/file"):format(precious))) == 0
  end

  before_each(function()
    data, precious = shell.path "data", shell.folder "precious"
    shell.write(precious .. "/file", "of the user\n")
    start()
  end)

  it("deletes no folder that a PersistentVolume names, whatever else it says", function()
    shell.must(("mkdir -p %s/volumes/pvc-planted && ln -s %s %s/volumes/pvc-link && touch %s/volumes/pvc-planted/file")
      :format(data, precious, data, data))
    local paths = {
      absolute = precious, all = data .. "/volumes",
      ["pvc-planted"] = data .. "/volumes/pvc-planted", ["pvc-link"] = data .. "/volumes/pvc-link",
      ["pvc-through"] = data .. "/volumes/pvc-link/file",
    }
    for name, path in pairs(paths) do
      server:must("POST", VOLUMES, forged(name, path, gone(name:gsub("^pvc%-", ""))))
    end
    local code, answer = server:ask("POST", VOLUMES,
      forged("up", data .. "/volumes/../../" .. precious:match "[^/]*$", gone "up"))
    assert.equal(422, code)
    assert.matches("must not contain '..'", answer.message, 1, true)
    for name in pairs(paths) do
      till(name .. " to be refused", function() return phase(VOLUMES .. "/" .. name) == "Failed" end)
    end
    assert.is_true(is_kept())
    shell.must(("test -f %s/volumes/pvc-planted/file"):format(data))
  end)

  it("mounts no folder that a PersistentVolume names", function()
    server:must("POST", VOLUMES, forged("mine", precious))
    server:must("POST", CLAIMS, claim("data", "mine"))
    till("the claim to be bound", function() return phase(CLAIMS .. "/data") == "Bound" end)
    server:must("POST", PODS, pod("p", "data", "rm -f vol/file"))
    local waiting = till("the pod to be refused", function()
      local status = (server:get(PODS .. "/p").status.containerStatuses or {})[1]
      return status and status.state.waiting and status.state.waiting.message and status.state.waiting
    end)
    assert.equal("CreateContainerConfigError", waiting.reason)
    assert.truthy(waiting.message:find('its volume "mine" was not made here', 1, true), waiting.message)
    assert.is_true(is_kept())
  end)

  it("knows the volumes of a folder that was kept without a record of them", function()
    server:must("POST", CLAIMS, claim "data")
    server:must("POST", PODS, pod("first", "data", "echo kept > vol/file"))
    till("the first pod to end", function() return phase(PODS .. "/first") == "Succeeded" end)
    local name = server:get(CLAIMS .. "/data").spec.volumeName
    assert.equal(0, server:stop())
    shell.must(("rm -r %s/volumes/.made"):format(data))
    start()
    server:must("POST", PODS, pod("second", "data", "grep kept vol/file"))
    till("the second pod to end", function() return phase(PODS .. "/second") == "Succeeded" end)
    server:must("DELETE", PODS .. "/first")
    server:must("DELETE", PODS .. "/second")
    server:must("DELETE", CLAIMS .. "/data")
    till("the volume to go", function() return not server:get(VOLUMES .. "/" .. name) end)
    assert.equal("", (shell.must(("ls -A %s/volumes/.made"):format(data))))
    assert.not_equal(0, select(2, shell.run(("test -e %s/volumes/%s"):format(data, name))))
  end)
end)
