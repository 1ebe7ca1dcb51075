-- Pods of moonloop dev have a file system of their own. On a machine without user namespaces they are processes, and
-- what would need a container is refused.
local dev = require "spec.host.support.dev"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"

local PODS = "/api/v1/namespaces/default/pods"

-- In a user namespace that may have none below it; the machine may have none anyway.
local LIMITED = not dev.no_namespaces
  and "unshare -Ur sh -c 'echo 0 >/proc/sys/user/max_user_namespaces; exec \"$@\"' --" or nil
local it_at_terminal = dev.it_unless(dev.no_terminals, it, function(why) pending(why) end)
local it_isolated = dev.it_unless(dev.no_namespaces, it, function(why) pending(why) end)


local function pod(name, script, path, more)
  local container = {
    name = "main", image = "busybox", command = { "sh", "-c", script },
    volumeMounts = path and { { name = "v", mountPath = path } } or nil,
  }
  for key, value in pairs(more or {}) do
    container[key] = value
  end
  return {
    apiVersion = "v1", kind = "Pod", metadata = { name = name },
    spec = { restartPolicy = "Never", containers = { container }, volumes = { { name = "v", emptyDir = {} } } },
  }
end


-- The state of its only container, as soon as `find` returns something of it.
local function till_state(server, name, find)
  return wait.till("the state of " .. name, 10, function()
    local found = server:get(PODS .. "/" .. name)
    local status = found and found.status.containerStatuses
    return status and find(status[1].state)
  end)
end


local function terminated(state)
  return state.terminated
end


local function refused(state)
  return state.waiting and state.waiting.message and state.waiting
end


describe("moonloop dev", function()
  local server
  after_each(dev.stop_all)

  local ways = {
    processes = { it = it, it_at_terminal = it_at_terminal, options = { under = LIMITED } },
    containers = { it = it_isolated, it_at_terminal = it_isolated, options = {} },
  }
  for what, way in pairs(ways) do
    way.it("runs the program that an image stands for, as " .. what, function()
      local program = shell.folder "programs" .. "/greeter"
      shell.write(program, "#!/bin/sh\necho \"$(basename $0): $*\"\n")
      shell.must("chmod 755 " .. program)
      server = dev.start({ "--image", "greeter=" .. program .. " nobody" }, way.options)
      local image = "example.com/team/greeter:1.2"
      local function make(name, command, args)
        local made = pod(name, nil, nil, { image = image, args = args, env = { { name = "WHO", value = "you" } } })
        made.spec.containers[1].command = command
        server:must("POST", PODS, made)
      end
      make("alone", nil, { "hello", "$(WHO)" })
      make("named", { "/greeter" }, { "again" })
      make "silent"
      make("other", { "echo" }, { "other" })
      local expected = { alone = "greeter: hello you\n", named = "greeter: again\n", silent = "greeter: nobody\n",
        other = "other\n" }
      for name, said in pairs(expected) do
        assert.equal(0, till_state(server, name, terminated).exitCode)
        assert.equal(said, server:must("GET", PODS .. "/" .. name .. "/log"))
      end
      server:stop()
    end)
  end

  for what, way in pairs(ways) do
    way.it_at_terminal("gives a pod the terminal and the input that it asks for, as " .. what, function()
      server = dev.start({}, way.options)
      local script = "for i in 0 1 2; do test -t $i || exit 9; done; stty size; echo $TERM; "
        .. "case $(tty) in /dev/pts/*) echo a terminal; esac; : >/dev/tty && echo its own"
      server:must("POST", PODS, pod("terminal", script, nil, { tty = true, stdin = true }))
      server:must("POST", PODS, pod("pipe", "test -p /dev/stdin && echo a pipe; test -t 1 || echo no terminal", nil,
        { stdin = true }))
      server:must("POST", PODS, pod("none", "cat; readlink /proc/self/fd/0"))
      assert.equal(0, till_state(server, "terminal", terminated).exitCode)
      assert.equal("0 0\r\nxterm\r\na terminal\r\nits own\r\n", server:must("GET", PODS .. "/terminal/log"))
      assert.equal(0, till_state(server, "pipe", terminated).exitCode)
      assert.equal("a pipe\nno terminal\n", server:must("GET", PODS .. "/pipe/log"))
      assert.equal(0, till_state(server, "none", terminated).exitCode)
      assert.equal("/dev/null\n", server:must("GET", PODS .. "/none/log"))
      server:stop()
    end)

    way.it("keeps pods from its own input and output, as " .. what, function()
      server = dev.start({}, way.options)
      -- All that a pod sees of the processes that serve it: its init, or the parents of a process.
      local script = "for of in 1 $PPID; do for i in 0 1 2; do "
        .. "readlink /proc/$of/fd/$i; test $of = 1 -a -z \"$IS_CONTAINER\" || echo stolen >/proc/$of/fd/$i; done; done"
      local env = { what == "containers" and { name = "IS_CONTAINER", value = "yes" } or nil }
      server:must("POST", PODS, pod("thief", script .. "; true", nil, { env = env[1] and env or nil }))
      assert.equal(0, till_state(server, "thief", terminated).exitCode)
      local seen = server:must("GET", PODS .. "/thief/log")
      assert.is_nil(seen:find(server.host.files, 1, true), seen)
      assert.is_nil(server.host:stderr():find("stolen", 1, true))
      assert.is_nil(server:story():find("thief%s+stolen"))
      server:stop()
    end)

    way.it_at_terminal("ends a shell that waits at its terminal, as " .. what, function()
      server = dev.start({}, way.options)
      server:must("POST", PODS, pod("shell", "echo up; exec sh -i", nil, { tty = true, stdin = true }))
      wait.till("the pod to run", 10, function()
        return (server:get(PODS .. "/shell/log") or ""):find "up"
      end)
      server:must("DELETE", PODS .. "/shell?gracePeriodSeconds=1")
      wait.till("the end of the shell", 10, function()
        return not server:get(PODS .. "/shell")
      end)
      server:stop()
    end)
  end

  it_isolated("runs pods that write where they like, and nothing of it reaches the machine", function()
    server = dev.start {}
    local outside = shell.folder "outside"
    local name = outside:gsub("/", "-")
    local script = ("for d in '' /tmp /etc /usr /root /var; do echo x >$d/%s; done; test ! -e %s || echo seen; "
      .. "echo kept >/etc/app/file; cat /etc/app/file; ls $d/%s"):format(name, outside, name)
    server:must("POST", PODS, pod("writer", script, "/etc/app"))
    assert.equal(0, till_state(server, "writer", terminated).exitCode)
    assert.equal("kept\n/" .. "var/" .. name .. "\n", server:must("GET", PODS .. "/writer/log"))
    for _, folder in ipairs { "", "/tmp", "/etc", "/usr", "/root", "/var" } do
      assert.is_nil(shell.read(folder .. "/" .. name), folder)
    end
    assert.is_nil(shell.read "/etc/app/file")
    assert.equal("", shell.must("ls -A " .. outside))
    server:stop()
  end)

  it_isolated("mounts volumes over /etc, and over no more than their pod sees", function()
    server = dev.start {}
    server:must("POST", PODS, pod("over", "ls /etc | tr '\\n' ' '", "/etc"))
    server:must("POST", PODS, pod("up", "ls -d /elsewhere", "/data/../../elsewhere"))
    server:must("POST", PODS, pod("proc", "true", "/proc/sys"))
    assert.equal(0, till_state(server, "over", terminated).exitCode)
    assert.equal("hostname hosts resolv.conf ", server:must("GET", PODS .. "/over/log"))
    assert.equal(0, till_state(server, "up", terminated).exitCode)
    assert.same({ 128, "StartError", 'error mounting to rootfs at "/proc/sys": it is inside /proc' }, (function()
      local state = till_state(server, "proc", terminated)
      return { state.exitCode, state.reason, state.message }
    end)())
    server:stop()
  end)

  it_isolated("says the last words of a container, and runs it as the user that it wants", function()
    server = dev.start {}
    server:must("POST", PODS, pod("words", "id -un >/dev/termination-log; exit 3", nil,
      { securityContext = { runAsUser = 4242 } }))
    assert.equal("4242\n", till_state(server, "words", terminated).message)
    server:must("POST", PODS, pod("log", "echo said; exit 3", nil,
      { terminationMessagePolicy = "FallbackToLogsOnError" }))
    assert.equal("said\n", till_state(server, "log", terminated).message)
    server:stop()
  end)

  it("waits for any time that a pod may say, and ends it all the same", function()
    local longest = 2147483647 -- of what is an int32
    local yes = { command = { "true" } }
    local object = pod("patient", "trap 'exit 0' TERM; while :; do sleep 0.1; done", nil, {
      lifecycle = { preStop = { exec = yes } },
      startupProbe = { exec = yes, timeoutSeconds = longest },
      readinessProbe = { exec = yes, timeoutSeconds = longest },
      livenessProbe = { tcpSocket = { port = 1 }, initialDelaySeconds = longest, timeoutSeconds = longest },
    })
    object.spec.terminationGracePeriodSeconds, object.spec.activeDeadlineSeconds = 10 ^ 12, longest
    server = dev.start {}
    server:must("POST", PODS, object)
    wait.till("it to be ready", 10, function()
      local found = server:get(PODS .. "/patient")
      return found.status.containerStatuses and found.status.containerStatuses[1].ready
    end)
    assert.equal("2", server:must("DELETE", PODS .. "/patient").metadata.deletionTimestamp:sub(1, 1))
    wait.till("it to go", 10, function() return not server:get(PODS .. "/patient") end)
    assert.is_nil(server.host:stderr():find("callback failed", 1, true))
    server:stop()
  end)

  it("starts a container again by its own rules, and says that it cannot start all", function()
    server = dev.start {}
    local function rules(action)
      return { restartPolicy = "Never", restartPolicyRules = { {
        action = action, exitCodes = { operator = "In", values = { 42 } },
      } } }
    end
    server:must("POST", PODS, pod("one", "exit 42", nil, rules "Restart"))
    server:must("POST", PODS, pod("all", "exit 42", nil, rules "RestartAllContainers"))
    till_state(server, "one", function(state)
      return state.waiting and state.waiting.reason == "CrashLoopBackOff"
    end)
    assert.matches("restartPolicyRules with action RestartAllContainers",
      till_state(server, "all", refused).message, 1, true)
    server:stop()
  end)

  it("refuses a volume in place of the root", function()
    server = dev.start {}
    server:must("POST", PODS, pod("root", "true", "/"))
    local state = till_state(server, "root", refused)
    assert.equal("CreateContainerError", state.reason)
    server:stop()
  end)

  it("says where there are no containers, and refuses what needs one", function()
    server = dev.start({}, { under = LIMITED })
    server:must("POST", PODS, pod("plain", "echo x >v/y; cat v/y", "v"))
    assert.equal(0, till_state(server, "plain", terminated).exitCode)
    assert.equal("x\n", server:must("GET", PODS .. "/plain/log"))
    server:till_said "pods run without containers: .*see Pods in docs/dev.md"
    server:must("POST", PODS, pod("absolute", "true", "/data"))
    assert.matches("volume \"v\" at /data: without containers, only relative paths are",
      till_state(server, "absolute", refused).message, 1, true)
    assert.is_nil(shell.read "/data/y")
    server:stop()
  end)
end)
