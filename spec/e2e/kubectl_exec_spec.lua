-- kubectl exec, attach, run -i, cp and port-forward, by the current kubectl (WebSockets) and by the distribution's,
-- which is years older (SPDY). On the embedded server: the pods of the control plane run nothing.
local cjson = require "cjson.safe"
local cluster = require "spec.e2e.support.cluster"
local dev = require "spec.host.support.dev"
local shell = require "spec.e2e.support.shell"
local socket = require "socket"
local wait = require "spec.e2e.support.wait"

local PODS = "/api/v1/namespaces/default/pods"
local CURRENT = os.getenv "KUBECTL" or "kubectl"

-- Sends back what it gets, each client in its own time.
local ECHO = [[
  local socket = require "socket"
  local server = assert(socket.bind("127.0.0.1", 7000))
  local clients = { server }
  while true do
    for _, ready in ipairs(socket.select(clients)) do
      if ready == server then
        local client = server:accept()
        client:settimeout(0)
        clients[#clients + 1] = client
      else
        local bytes, why, rest = ready:receive(65536)
        ready:settimeout(nil)
        ready:send(bytes or rest)
        ready:settimeout(0)
        if why == "closed" then
          for i, client in ipairs(clients) do
            if client == ready then table.remove(clients, i) end
          end
          ready:close()
        end
      end
    end
  end]]

-- A script for `sh -c` that ends at once when it is told to.
local WAITS = "trap 'exit 0' TERM; while :; do sleep 0.1; done"


local function old_kubectl()
  return shell.must("cluster/spec/conformance/old_kubectl.sh 2>/dev/null"):match "%S+" .. "/kubectl"
end


local function container(name, command, more)
  local made = { name = name, image = "busybox", command = command }
  for key, value in pairs(more or {}) do
    made[key] = value
  end
  return made
end


local function pod(name, containers)
  return { apiVersion = "v1", kind = "Pod", metadata = { name = name },
    spec = { restartPolicy = "Never", terminationGracePeriodSeconds = 1, containers = containers } }
end


for which, find in pairs { current = function() return CURRENT end, old = old_kubectl } do
  describe("kubectl (" .. which .. ")", function()
    local server, program

    -- Runs a shell line in which kubectl is the one that is tried; returns what it printed, and its exit code.
    local function run(line, ...)
      return shell.run(("export KUBECONFIG=%s; kubectl() { %s \"$@\"; }; { %s; } 2>&1"):format(server.kubeconfig,
        shell.quote(program), line:format(...)))
    end

    local function till_phase(name, phase)
      wait.till(name .. " to be " .. phase, 10, function()
        local now = server:get(PODS .. "/" .. name)
        return now and now.status.phase == phase, now and cjson.encode(now.status)
      end)
    end

    setup(function()
      if not cluster.controlplane then
        program = find()
        server = dev.start()
        server:must("POST", PODS, pod("main", {
          container("a", { "sh", "-c", WAITS }), container("b", { "lua5.4", "-e", ECHO }),
        }))
        server:must("POST", PODS, pod("reader", {
          container("a", { "sh", "-c", "while read line; do echo got $line; done; echo end" },
            { stdin = true, stdinOnce = true }),
        }))
        server:must("POST", PODS, pod("done", { container("a", { "true" }) }))
        till_phase("main", "Running")
        till_phase("reader", "Running")
        till_phase("done", "Succeeded")
      end
    end)

    teardown(function()
      if server then
        assert.equal(0, server:stop())
      end
      dev.stop_all()
    end)

    local function test(name, fn)
      it(name, function()
        if cluster.controlplane then
          pending "tried with the embedded server"
          return
        end
        fn()
      end)
    end

    test("exec passes output, errors and the exit code on", function()
      local said, code = run("kubectl exec main -c a -- sh -c 'echo out; echo err >&2; exit 3' 2>/dev/null")
      assert.equal("out\n", said)
      assert.equal(3, code)
      said = run "kubectl exec main -c a -- sh -c 'echo out; echo err >&2' 2>&1 >/dev/null"
      assert.equal("err\n", said)
      assert.equal(0, select(2, run "kubectl exec main -c a -- true"))
    end)

    test("exec passes input on, however much it is, and its end", function()
      local made = "head -c 5000000 /dev/urandom >%s; sha256sum <%s"
      local file = shell.path "input"
      local sum = shell.must(made:format(file, file))
      assert.equal(sum, run("kubectl exec -i main -c a -- sha256sum <%s", file))
      assert.equal(sum, run("kubectl exec -i main -c a -- cat <%s | sha256sum", file))
    end)

    test("exec holds a command whose output nobody reads", function()
      local sum = shell.must "head -c 30000000 /dev/zero | sha256sum"
      assert.equal(sum, run "kubectl exec main -c a -- head -c 30000000 /dev/zero | { sleep 0.5; sha256sum; }")
    end)

    test("exec -it has a terminal of the size that the client's has", function()
      local line = "stty rows 33 cols 77; %s exec -it main -c a -- sh -c 'test -t 0 || exit 9; i=0; "
        .. "until stty size | grep 33.77 || test $i = 200; do i=$((i+1)); sleep 0.05; done; exit 4'"
      local said, code = run("script -qec %s /dev/null", shell.quote(line:format(program)))
      assert.truthy(said:find "33 77", said)
      assert.equal(4, code)
    end)

    test("exec says what is wrong", function()
      local said, code = run "kubectl exec main -c a -- no-such-program"
      assert.truthy(said:find "no%-such%-program" and said:find "not found", said)
      assert.truthy(code ~= 0)
      assert.truthy(run("kubectl exec main -c none -- true"):find "container none is not valid for pod main")
      assert.truthy(run("kubectl exec done -- true"):find "completed pod")
      assert.truthy(run("kubectl exec nobody -- true"):find 'pods "nobody" not found')
    end)

    test("exec's command ends when its client has gone", function()
      local function sleeps()
        return shell.run "pgrep -xf 'sleep [4]321'" ~= ""
      end
      local pid = shell.path "pid"
      shell.must(("KUBECONFIG=%s %s exec main -c a -- sleep 4321 >/dev/null 2>&1 </dev/null & echo $! >%s"):format(
        server.kubeconfig, shell.quote(program), pid))
      wait.till("the command to run", 10, sleeps)
      shell.must("kill " .. shell.read(pid))
      wait.till("the command to end", 10, function()
        return not sleeps()
      end)
    end)

    test("cp copies files in and out", function()
      local from, back = shell.path "from", shell.path "back"
      shell.must(("head -c 200000 /dev/urandom >%s"):format(from))
      local said, code = run("kubectl cp -c a %s main:/tmp/there && kubectl cp -c a main:/tmp/there %s", from, back)
      assert.equal(0, code, said)
      shell.must(("cmp %s %s"):format(from, back))
    end)

    test("attach writes to a container that reads, and shows what it says", function()
      assert.equal("got one\ngot two\nend\n", (run "printf 'one\\ntwo\\n' | kubectl attach -i reader 2>/dev/null"))
      till_phase("reader", "Succeeded")
    end)

    test("run -i --rm is a command in a pod", function()
      local said = run "echo hello | kubectl run once -i --rm --restart=Never --image=x --command -- cat 2>/dev/null"
      assert.truthy(said:find "hello\n", said)
      assert.is_nil(server:get(PODS .. "/once"))
    end)

    -- Runs fn(port) while a port is forwarded.
    local function forward(ports, fn)
      local log, pid = shell.path "forward", shell.path "pid"
      shell.must(([[KUBECONFIG=%s %s port-forward pod/main %s >%s 2>&1 </dev/null & echo $! >%s]]):format(
        server.kubeconfig, shell.quote(program), ports, log, pid))
      local port = wait.till("kubectl to listen", 10, function()
        return (shell.read(log) or ""):match "127%.0%.0%.1:(%d+)", shell.read(log)
      end)
      local ok, why = pcall(fn, math.tointeger(tonumber(port)), log)
      shell.run("kill " .. shell.read(pid))
      assert(ok, why)
    end

    local function connect(port)
      local client = socket.tcp()
      client:settimeout(10)
      assert(client:connect("127.0.0.1", port))
      return client
    end

    test("port-forward reaches what listens on the pod's loopback", function()
      forward(":7000", function(port)
        local clients = {}
        for i = 1, 5 do
          clients[i] = connect(port)
          clients[i]:send("I am " .. i .. "\n")
        end
        for i = 5, 1, -1 do
          assert.equal("I am " .. i, clients[i]:receive())
        end
        clients[1]:send(("x"):rep(3000000) .. "\n")
        assert.equal(3000000, #clients[1]:receive())
        clients[2]:send "the last"
        clients[2]:shutdown "send"
        assert.equal("the last", clients[2]:receive "*a")
      end)
    end)

    test("port-forward says that nobody listens", function()
      forward(":7001", function(port, log)
        local client = connect(port)
        client:send "hello\n"
        assert.is_nil(client:receive())
        wait.till("kubectl to say so", 10, function()
          return shell.read(log):find "connection refused", shell.read(log)
        end)
      end)
    end)
  end)
end
