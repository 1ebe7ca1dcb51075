-- Pods as other projects' manifests and operators make them: with what the node has for them, and with a deadline.
local dev = require "spec.host.support.dev"
local wait = require "spec.e2e.support.wait"

local PODS = "/api/v1/namespaces/default/pods"


local function pod(name, container, more)
  container.name, container.image = "main", container.image or "busybox"
  local spec = { restartPolicy = "Never", containers = { container } }
  for key, value in pairs(more or {}) do
    spec[key] = value
  end
  return { apiVersion = "v1", kind = "Pod", metadata = { name = name }, spec = spec }
end


describe("moonloop dev", function()
  local server
  after_each(dev.stop_all)

  -- Waits for its end. @return string its log
  local function log_of_ended(name)
    wait.till(name .. " to end", 10, function()
      return server:get(PODS .. "/" .. name).status.phase == "Succeeded"
    end)
    return server:must("GET", PODS .. "/" .. name .. "/log")
  end

  it("gives containers the limits that its node has", function()
    server = dev.start {}
    local node = server:must("GET", "/api/v1/nodes/moonloop").status
    assert.equal("110", node.capacity.pods)
    local command = "echo $CPU $MEMORY $OWN $FIRST; cat files/memory; cat files/storage >/dev/null"
    local function variable(name, resource, divisor, container)
      return { name = name, valueFrom = { resourceFieldRef = {
        resource = resource, divisor = divisor, containerName = container,
      } } }
    end
    server:must("POST", PODS, pod("p", {
      command = { "sh", "-c", command },
      resources = { limits = { cpu = "250m" } },
      env = {
        variable("CPU", "limits.cpu"), variable("MEMORY", "limits.memory", "1Ki"), variable("OWN", "limits.cpu", "1m"),
        variable("FIRST", "requests.memory", "1Mi", "first"),
      },
      volumeMounts = { { name = "files", mountPath = dev.no_namespaces and "files" or "/files" } },
      workingDir = not dev.no_namespaces and "/" or nil,
    }, {
      initContainers = { { name = "first", image = "busybox", command = { "true" },
        resources = { requests = { memory = "64Mi" } } } },
      volumes = { { name = "files", downwardAPI = { items = {
        { path = "memory", resourceFieldRef = { containerName = "main", resource = "limits.memory" } },
        { path = "storage", resourceFieldRef = { containerName = "main", resource = "limits.ephemeral-storage" } },
      } } } },
    }))
    local kibibytes, bytes = log_of_ended("p"):match "^1 (%d+) 250 64\n(%d+)$"
    assert.equal(kibibytes * 1024, tonumber(bytes))
    local amount, unit = node.allocatable.memory:match "^(%d+)(%a*)$"
    assert.equal(amount * 1024 ^ (#unit > 0 and ("KMG"):find(unit:sub(1, 1)) or 0), tonumber(bytes))
  end)

  it("ends a pod whose deadline is patched to one that has passed", function()
    server = dev.start {}
    server:must("POST", PODS, pod("late", { command = { "sleep", "1000" } }))
    wait.till("the pod to run", 10, function() return server:get(PODS .. "/late").status.phase == "Running" end)
    server:must("PATCH", PODS .. "/late", { spec = { activeDeadlineSeconds = 1 } },
      { type = "application/merge-patch+json" })
    local status = wait.till("the pod to fail", 10, function()
      local found = server:get(PODS .. "/late")
      return found.status.phase == "Failed" and found.status
    end)
    assert.equal("DeadlineExceeded", status.reason)
    assert.equal(143, status.containerStatuses[1].state.terminated.exitCode)
    assert.equal(server:get(PODS .. "/late").metadata.generation, status.observedGeneration)
  end)
end)
