-- Pods as other projects' manifests and operators make them: with a command of the image's own, with volumes of the
-- program's name, with what the node has for them, and with a deadline.
local dev = require "spec.host.support.dev"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local PODS = "/api/v1/namespaces/default/pods"

local it_isolated = dev.it_unless(dev.no_namespaces, it, function(why) pending(why) end)


local function write_program(name, text)
  local path = shell.folder "programs" .. "/" .. name
  shell.write(path, "#!/bin/sh\n" .. text .. "\n")
  shell.must("chmod 755 " .. path)
  return path
end


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

  local BAD = {
    { "app=%s/gone", "%s/gone: it does not exist: build it first, or name its path from this folder" },
    { "app=%s", "%s: it is a folder: name the program in it" },
    { "app=%s/text", "%s/text: it cannot be executed: run chmod +x on it, or name another" },
    { "app=%s/text:/bin/", "PATH is that of a file, without / at its end" },
    { "app=", "expected NAME=PROGRAM[:PATH]; NAME is the last part of an image's name, without its tag" },
    { "app=:/bin/app", "expected NAME=PROGRAM[:PATH]; NAME is the last part of an image's name, without its tag" },
  }
  for _, case in ipairs(BAD) do
    it("refuses --image " .. case[1], function()
      local folder = shell.folder "bad-programs"
      shell.write(folder .. "/text", "text\n")
      shell.must(("chmod 600 %s/text"):format(folder))
      local option = case[1]:format(folder)
      local result = dev.command("--image", option)
      assert.equal(2, result.code)
      assert.truthy(result.err:find(("--image %s: %s"):format(option, case[2]:format(folder)), 1, true), result.err)
    end)
  end

  it_isolated("has a program where the command of its image looks for it", function()
    local manager = write_program("manager-linux-amd64", "echo \"$0 $*\"")
    local reloader = write_program("reloader", "echo \"$0 $*\" >/shared/config")
    server = dev.start { "--image", "manager=" .. manager .. ":/manager", "--image", "reloader=" .. reloader }
    server:must("POST", PODS, pod("named", { image = "ghcr.io/team/manager:v1", command = { "/manager" },
      args = { "--leader-elect" } }))
    local shared = { { name = "shared", mountPath = "/shared" } }
    server:must("POST", PODS, pod("generated", { command = { "cat", "/shared/config" }, volumeMounts = shared }, {
      initContainers = { { name = "init-config", image = "quay.io/team/reloader", command = { "/bin/reloader" },
        args = { "--once" }, volumeMounts = shared } },
      volumes = { { name = "shared", emptyDir = {} } },
    }))
    assert.equal("/manager --leader-elect\n", log_of_ended "named")
    assert.equal("/bin/reloader --once\n", log_of_ended "generated")
  end)

  it_isolated("keeps a program and a volume of its name apart", function()
    local program = write_program("prometheus", "echo \"$0 $*\" >/prometheus/data && cat /prometheus/data")
    server = dev.start { "--image", "prometheus=" .. program, "--image", "other=" .. program .. ":/data" }
    local function make(name, image, path)
      server:must("POST", PODS, pod(name, { image = image, args = { "--config" },
        volumeMounts = { { name = "db", mountPath = path } } }, { volumes = { { name = "db", emptyDir = {} } } }))
    end
    make("apart", "quay.io/prometheus/prometheus:v3", "/prometheus")
    make("taken", "other", "/data")
    assert.equal("/usr/local/bin/prometheus --config\n", log_of_ended "apart")
    local message = wait.till("the pod to wait", 10, function()
      local status = (server:get(PODS .. "/taken").status.containerStatuses or {})[1]
      return status and status.state.waiting and status.state.waiting.message
    end)
    assert.equal("the program of image other cannot be at /data: volume \"db\" is there. "
      .. "--image other=PROGRAM:PATH says another path", message)
  end)

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

  it("runs the program of the image that a container gets while it runs", function()
    local old, new = write_program("old", "exec sleep 1000"), write_program("new", "echo new; exec sleep 1000")
    server = dev.start { "--image", "old=" .. old, "--image", "new=" .. new }
    server:must("POST", PODS, pod("p", { image = "old:1" }))
    wait.till("the pod to run", 10, function() return server:get(PODS .. "/p").status.phase == "Running" end)
    server:must("PATCH", PODS .. "/p", { spec = { containers = { { name = "main", image = "new:1" } } } },
      { type = "application/strategic-merge-patch+json" })
    local status = wait.till("the pod to start again", 10, function()
      local found = server:get(PODS .. "/p").status.containerStatuses[1]
      return found.restartCount == 1 and found.state.running and found
    end)
    assert.same({ "new:1", 143 }, { status.image, status.lastState.terminated.exitCode })
    wait.till("its first line", 10, function()
      return server:must("GET", PODS .. "/p/log") == "new\n"
    end)
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

  it("tells in the terminal how a container ended that it does not start again yet", function()
    server = dev.start {}
    server:must("POST", PODS, pod("crash", {
      command = { "sh", "-c", "echo no such table >&2; exit 3" }, terminationMessagePolicy = "FallbackToLogsOnError",
    }, { restartPolicy = "Always" }))
    server:must("POST", PODS, pod("init", { command = { "sleep", "1000" } }, {
      restartPolicy = "OnFailure",
      initContainers = { { name = "step", image = "busybox", command = { "sh", "-c", "exit 4" } } },
    }))
    server:till_told "pod/crash +Running: CrashLoopBackOff after exit code 3 %(no such table%): back%-off 10s"
    server:till_told "pod/init +Pending: CrashLoopBackOff after exit code 4: back%-off 10s"
  end)
end)
