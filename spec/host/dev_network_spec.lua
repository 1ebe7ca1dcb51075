-- Pods of moonloop dev in a network of their own. On a machine without user namespaces they are in the machine's.
local dev = require "spec.host.support.dev"
local shell = require "spec.e2e.support.shell"
local socket = require "socket"
local wait = require "spec.e2e.support.wait"

local CORE = "/api/v1/namespaces/default"
local PODS = CORE .. "/pods"
local OWN = { "--pod-network", "own" }

-- In a user namespace that may have only so many of a kind below it.
local LIMITED = "unshare -Ur sh -c 'echo %d >/proc/sys/user/max_%s_namespaces; exec \"$@\"' --"
local it_isolated = dev.it_unless(dev.no_namespaces, it, function(why) pending(why) end)

-- Says its name to everybody who connects, and then what they say.
local SERVER = [[
  local server = assert(require("socket").bind("*", %d))
  local name = io.open("/etc/hostname"):read()
  while true do
    local client = server:accept()
    client:send("I am " .. name .. "\n")
    local line = client:receive()
    client:send((line or "") .. "\n")
    client:close()
  end]]

local HTTP_SERVER = [[
  local server = assert(require("socket").bind("*", 8080))
  while true do
    local client = server:accept()
    local first = client:receive()
    repeat until client:receive() == ""
    client:send(first:find "/ready" and "HTTP/1.0 200 OK\r\n\r\n" or "HTTP/1.0 404 No\r\n\r\n")
    client:close()
  end]]

-- Prints the first line that it gets from each place, or why it gets none.
local CLIENT = [[
  local socket = require "socket"
  for place in ("%s"):gmatch "%%S+" do
    local host, port = place:match "^(.*):(%%d+)$"
    local tcp, start = socket.tcp(), socket.gettime()
    tcp:settimeout(5)
    local ok, why = tcp:connect(host, port)
    print(place, ok and (tcp:receive()) or why, socket.gettime() - start < 2 and "at once" or "late")
    tcp:close()
  end]]


local function pod(name, command, more)
  local container = { name = "main", image = "busybox", command = command }
  local spec = { restartPolicy = "Never", containers = { container }, terminationGracePeriodSeconds = 1 }
  for key, value in pairs(more or {}) do
    (key == "ports" and container or key == "readinessProbe" and container or spec)[key] = value
  end
  return { apiVersion = "v1", kind = "Pod", metadata = { name = name, labels = { app = name } }, spec = spec }
end


local function server_pod(name, port, more)
  more = more or {}
  more.ports = more.ports or { { name = "main", containerPort = port } }
  more.readinessProbe = more.readinessProbe or { tcpSocket = { port = "main" } }
  more.readinessProbe.periodSeconds, more.readinessProbe.failureThreshold = 1, 100
  return pod(name, { "lua5.4", "-e", SERVER:format(port) }, more)
end


local function service(name, port, more)
  local spec = { selector = { app = name }, ports = { { name = "main", port = port, targetPort = "main" } } }
  for key, value in pairs(more or {}) do
    spec[key] = value
  end
  return { apiVersion = "v1", kind = "Service", metadata = { name = name }, spec = spec }
end


-- So many different ports of the machine that are free now.
local function free_ports(count)
  local listeners, ports = {}, {}
  for i = 1, count do
    listeners[i] = assert(socket.bind("127.0.0.1", 0))
    local _, port = listeners[i]:getsockname()
    ports[i] = math.tointeger(tonumber(port))
  end
  for _, listener in ipairs(listeners) do
    listener:close()
  end
  return table.unpack(ports)
end


describe("moonloop dev with a network of pods' own", function()
  local server
  after_each(dev.stop_all)

  local function till_pod(name, find)
    return wait.till("pod " .. name, 15, function()
      local found = server:get(PODS .. "/" .. name)
      return found and find(found), server.host:stderr()
    end)
  end

  local function till_ready(name)
    return till_pod(name, function(found)
      for _, condition in ipairs(found.status.conditions or {}) do
        if condition.type == "Ready" and condition.status == "True" then
          return found.status
        end
      end
    end)
  end

  -- Waits until a Service has as many endpoints.
  local function till_endpoints(name, count)
    wait.till("endpoints of " .. name, 15, function()
      local found = server:get(CORE .. "/endpoints/" .. name)
      local subset = found and (found.subsets or {})[1]
      return #((subset or {}).addresses or {}) == count
    end)
  end

  -- Runs a command in a pod, and returns its output when the pod has ended.
  local function run(name, command, more)
    server:must("POST", PODS, pod(name, command, more))
    till_pod(name, function(found)
      return found.status.phase == "Succeeded" or found.status.phase == "Failed"
    end)
    return server:must("GET", PODS .. "/" .. name .. "/log")
  end

  -- Runs a client in a pod; returns a list of its answers from these places, in their order.
  local function ask(name, ...)
    local lines, text = {}, run(name, { "lua5.4", "-e", CLIENT:format(table.concat({ ... }, " ")) })
    for said in text:gmatch "[^\t\n]+\t([^\n]*)" do
      lines[#lines + 1] = said
    end
    return lines
  end

  it_isolated("has three servers listen on one port, each at its address, its Service and its names", function()
    server = dev.start(OWN)
    local places = {}
    for _, name in ipairs { "one", "two", "three" } do
      server:must("POST", CORE .. "/services", service(name, 70))
      server:must("POST", PODS, server_pod(name, 6379))
    end
    local headless = { clusterIP = "None", selector = { app = "two" } }
    server:must("POST", CORE .. "/services", service("headless", 70, headless))
    for _, name in ipairs { "one", "two", "three" } do
      places[#places + 1] = till_ready(name).podIP .. ":6379"
      till_endpoints(name, 1)
      places[#places + 1] = server:get(CORE .. "/services/" .. name).spec.clusterIP .. ":70"
    end
    till_endpoints("headless", 1)
    for _, place in ipairs { "one:70", "two.default:70", "three.default.svc.cluster.local:70", "headless:6379" } do
      places[#places + 1] = place
    end
    assert.same({
      "I am one\tat once", "I am one\tat once", "I am two\tat once", "I am two\tat once", "I am three\tat once",
      "I am three\tat once", "I am one\tat once", "I am two\tat once", "I am three\tat once", "I am two\tat once",
    }, ask("client", table.unpack(places)))
    server:stop()
  end)

  it_isolated("refuses at once what nobody serves", function()
    server = dev.start(OWN)
    server:must("POST", CORE .. "/services", service("empty", 70))
    server:must("POST", CORE .. "/services", service("noport", 70, { selector = { app = "quiet" } }))
    server:must("POST", PODS, pod("quiet", { "sleep", "60" }))
    local answers = ask("client", "empty:70", "noport:70", "nobody.default.svc.cluster.local.:70",
      "nobody.nowhere.svc.cluster.local.:70", "10.244.77.77:70")
    assert.same({ "connection refused\tat once", "connection refused\tat once" }, { answers[1], answers[2] })
    assert.matches("\tat once", answers[3])
    assert.matches("\tat once", answers[4])
    assert.not_matches("I am", answers[5])
    server:stop()
  end)

  it_isolated("reaches the API server by its name, with the token of its service account", function()
    server = dev.start(OWN)
    local script = [[cd /var/run/secrets/kubernetes.io/serviceaccount
      printf 'GET /api/v1/namespaces/default/services HTTP/1.1\r\nHost: kubernetes.default\r\n]]
      .. [[Authorization: Bearer %s\r\nConnection: close\r\n\r\n' "$(cat token)" | openssl s_client -quiet ]]
      .. [[-verify_quiet -verify_return_error -verify_hostname $1 -CAfile ca.crt -connect $2]]
    local function reach(name, host, place)
      return run(name, { "sh", "-c", script, "sh", host, place })
    end
    assert.matches("HTTP/1.1 200.*ServiceList", reach("name", "kubernetes.default", "kubernetes.default:443"))
    assert.matches("HTTP/1.1 200", reach("full", "kubernetes.default.svc", "kubernetes.default.svc:443"))
    local by_variables = "set -- kubernetes $KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT\n" .. script
    assert.matches("HTTP/1.1 200", run("address", { "sh", "-c", by_variables }))
    assert.matches("HTTP/1.1 200", reach("endpoint", "kubernetes", "10.244.0.1:6443"))
    server:stop()
  end)

  it_isolated("tells containers of Services, names and their own address", function()
    server = dev.start(OWN)
    server:must("POST", CORE .. "/services", service("my-db", 70))
    local said = run("env", { "sh", "-c", "env; cat /etc/resolv.conf /etc/hosts" },
      { hostname = "h", subdomain = "s", dnsConfig = { options = { { name = "ndots", value = "2" } } } })
    local address = server:get(CORE .. "/services/my-db").spec.clusterIP
    local own = server:get(PODS .. "/env").status.podIP
    for _, text in ipairs {
      "KUBERNETES_SERVICE_HOST=10.0.0.1\n", "KUBERNETES_SERVICE_PORT_HTTPS=443\n",
      "MY_DB_SERVICE_HOST=" .. address .. "\n", "MY_DB_PORT_70_TCP=tcp://" .. address .. ":70\n",
      "search default.svc.cluster.local svc.cluster.local cluster.local", "\nnameserver 10.0.0.10\noptions ndots:2\n",
      own .. "\th.s.default.svc.cluster.local\th\n",
    } do
      assert.matches(text, said, 1, true)
    end
    assert.matches("^10%.244%.", own)
    local other = run("plain", { "env" }, { enableServiceLinks = false })
    assert.not_matches("MY_DB", other)
    assert.matches("KUBERNETES_SERVICE_HOST", other)
    server:stop()
  end)

  it_isolated("gives a pod the host name that it asks for", function()
    server = dev.start(OWN)
    local show = { "sh", "-c", "hostname; echo $HOSTNAME; cat /etc/hostname; tail -n1 /etc/hosts | cut -f2-" }
    local full, other = "h.s.default.svc.cluster.local", "other.example.com"
    assert.equal((full .. "\n"):rep(4):gsub("\n$", "\th\n"),
      run("full", show, { hostname = "h", subdomain = "s", setHostnameAsFQDN = true }))
    assert.equal((other .. "\n"):rep(4),
      run("other", show, { hostname = "h", subdomain = "s", hostnameOverride = other }))
    local long = pod("long", show, { subdomain = ("s"):rep(40), setHostnameAsFQDN = true })
    server:must("POST", PODS, long)
    local waiting = till_pod("long", function(found)
      local status = found.status.containerStatuses
      local state = status and status[1].state.waiting
      return state and state.message and state
    end)
    local words = "failed to construct FQDN from pod hostname and cluster domain, FQDN long.%s.default.svc.cluster"
      .. ".local is too long (64 characters is the max, 71 characters requested)"
    assert.equal(words:format(("s"):rep(40)), waiting.message)
    server:stop()
  end)

  it_isolated("serves ports of containers on 127.0.0.1, where they are free, and node ports", function()
    server = dev.start(OWN)
    local free, other, busy = free_ports(3)
    local taken = assert(socket.bind("127.0.0.1", busy))
    server:must("POST", CORE .. "/services", service("first", 70, { type = "NodePort" }))
    server:must("POST", PODS, server_pod("first", free, {
      ports = { { name = "main", containerPort = free }, { containerPort = busy } },
    }))
    server:must("POST", PODS, server_pod("second", 7777, {
      ports = { { name = "main", containerPort = 7777, hostPort = other } },
    }))
    till_ready "first"
    till_ready "second"
    till_endpoints("first", 1)
    local node_port = server:get(CORE .. "/services/first").spec.ports[1].nodePort
    for port, name in pairs { [free] = "first", [other] = "second", [node_port] = "first" } do
      local client = assert(socket.connect("127.0.0.1", port))
      client:settimeout(5)
      assert.equal("I am " .. name, client:receive())
      client:send "and you\n"
      assert.equal("and you", client:receive())
      assert.equal("closed", select(2, client:receive()))
    end
    taken:close()
    server:stop()
  end)

  it_isolated("finds pods at the numbers that a named port has in them, and Endpoints that somebody wrote", function()
    server = dev.start(OWN)
    local new = server_pod("new", 9090)
    new.metadata.labels.app = "old"
    local sticky = service("sticky", 70, { selector = { app = "old" }, sessionAffinity = "ClientIP" })
    for _, made in ipairs { service("old", 70), sticky } do
      server:must("POST", CORE .. "/services", made)
    end
    server:must("POST", PODS, server_pod("old", 8080))
    server:must("POST", PODS, new)
    till_ready "old"
    local address = till_ready("new").podIP
    server:must("POST", CORE .. "/services", {
      metadata = { name = "byhand" }, spec = { ports = { { name = "main", port = 70 } } },
    })
    server:must("POST", CORE .. "/endpoints", { metadata = { name = "byhand" }, subsets = {
      { addresses = { { ip = address } }, ports = { { name = "main", port = 9090 } } },
    } })
    wait.till("slices", 15, function()
      local ready = 0
      for _, slice in ipairs(server:get("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices").items) do
        local is_own = slice.metadata.labels["kubernetes.io/service-name"] ~= "kubernetes"
        ready = ready + (is_own and type(slice.endpoints) == "table" and #slice.endpoints or 0)
      end
      return ready == 5
    end)
    local answers = ask("client", "old:70", "old:70", "sticky:70", "sticky:70", "sticky:70", "byhand:70")
    assert.equal("I am new\tat once", table.remove(answers))
    assert.equal(answers[4], answers[5])
    assert.equal(answers[3], answers[4])
    table.sort(answers)
    assert.same({ "I am new\tat once", "I am old\tat once" }, { answers[1], answers[5] })
    server:stop()
  end)

  it_isolated("serves node ports at the node's address, for pods and this machine", function()
    server = dev.start(OWN)
    server:must("POST", CORE .. "/services", service("web", 70, { type = "NodePort" }))
    server:must("POST", PODS, server_pod("web", 8080))
    till_ready "web"
    till_endpoints("web", 1)
    local address = server:get("/api/v1/nodes").items[1].status.addresses[1].address
    local node_port = math.tointeger(server:get(CORE .. "/services/web").spec.ports[1].nodePort)
    local client = assert(socket.connect(address, node_port))
    client:settimeout(5)
    assert.equal("I am web", client:receive())
    client:close()
    if address ~= "127.0.0.1" then -- which is the pod's own
      local stranger = socket.tcp()
      stranger:settimeout(0.3)
      assert(stranger:bind("127.0.0.1", 0))
      assert.equal("timeout", select(2, stranger:connect(address, node_port)))
      stranger:close()
      assert.same({ "I am web\tat once" }, ask("client", address .. ":" .. node_port))
    end
    server:stop()
  end)

  it_isolated("cuts connections to a pod that is killed, and its port is free again", function()
    server = dev.start(OWN)
    local port = free_ports(1)
    server:must("POST", PODS, server_pod("victim", port))
    till_ready "victim"
    local client = assert(socket.connect("127.0.0.1", port))
    client:settimeout(10)
    assert.equal("I am victim", client:receive())
    server:must("DELETE", PODS .. "/victim?gracePeriodSeconds=0")
    assert.equal("closed", select(2, client:receive()))
    wait.till("the port to be free", 10, function()
      local listener = socket.bind("127.0.0.1", port)
      return listener and listener:close()
    end)
    server:stop()
  end)

  it_isolated("lets anybody listen below 1024, and leaves pods of the machine's network there", function()
    server = dev.start(OWN)
    server:must("POST", PODS, server_pod("low", 80, { securityContext = { runAsUser = 1000 } }))
    assert.matches("^10%.244%.", till_ready("low").podIP)
    local said = run("outside", { "sh", "-c", "env; cat /etc/resolv.conf" }, { hostNetwork = true })
    local status = server:get(PODS .. "/outside").status
    assert.equal(status.hostIP, status.podIP)
    assert.not_matches("KUBERNETES_SERVICE_HOST", said)
    assert.not_matches("10.0.0.10", said, 1, true)
    server:stop()
  end)

  it_isolated("says of a pod that can have no network why it waits", function()
    server = dev.start(OWN, { under = LIMITED:format(1, "net") }) -- the one of the node
    server:must("POST", PODS, pod("late", { "sleep", "60" }, { restartPolicy = "Always" }))
    local message = till_pod("late", function(found)
      local container = (found.status.containerStatuses or {})[1]
      return container and container.state.waiting and container.state.waiting.message
    end)
    assert.equal("the pod's network: make a network namespace: No space left on device", message)
    server:stop()
  end)

  it_isolated("lets probes ask each pod where it is: two with one port, of which one knows only itself", function()
    server = dev.start(OWN, { env = { http_proxy = "http://127.0.0.1:1" } }) -- which is not for pods
    server:must("POST", PODS, pod("quiet", { "sleep", "60" }, {
      readinessProbe = { tcpSocket = { port = 8080 }, periodSeconds = 1, failureThreshold = 100 },
    }))
    server:must("POST", PODS, pod("web", { "lua5.4", "-e", HTTP_SERVER }, {
      readinessProbe = { httpGet = { path = "/ready", port = 8080 }, periodSeconds = 1, failureThreshold = 100 },
    }))
    local command = { "lua5.4", "-e", "assert(require('socket').connect('127.0.0.1', 8080))" }
    server:must("POST", PODS, pod("exec", { "lua5.4", "-e", SERVER:format(8080) }, {
      readinessProbe = { exec = { command = command }, periodSeconds = 1, failureThreshold = 100 },
    }))
    till_ready "web"
    till_ready "exec"
    for _, condition in ipairs(server:get(PODS .. "/quiet").status.conditions) do
      assert.is_true(condition.type ~= "Ready" or condition.status == "False")
    end
    server:stop()
  end)

  it_isolated("gives a pod its address again after a restart, and the machine's without a network", function()
    local data = shell.path "data"
    local words = { "--data", data, table.unpack(OWN) }
    server = dev.start(words)
    for _, name in ipairs { "gone", "stays" } do
      server:must("POST", PODS, pod(name, { "sleep", "600" }, { restartPolicy = "Always" }))
      wait.till("an address", 10, function()
        return (server:get(PODS .. "/" .. name).status or {}).podIP
      end)
    end
    server:must("DELETE", PODS .. "/gone?gracePeriodSeconds=0")
    local function running(found)
      return found.status.phase == "Running" and found.status
    end
    local address = till_pod("stays", running).podIP
    assert.equal("10.244.0.3", address)
    server:stop()
    server = dev.start(words)
    assert.equal(address, till_pod("stays", running).podIP)
    server:stop()
    server = dev.start { "--data", data, "--pod-network", "host" }
    till_pod("stays", function(found)
      return found.status.podIP == found.status.hostIP
    end)
    server:stop()
  end)

  for kind, it_limited in pairs { user = it, net = it_isolated } do
    it_limited(("is the machine's where %s namespaces are not allowed, and says so"):format(kind), function()
      local words = kind == "net" and OWN or {} -- it is the default
      server = dev.start(words, { under = not dev.no_namespaces and LIMITED:format(0, kind) or nil })
      server:till_said "pods share this machine's network: .*see Networks in docs/dev.md"
      assert.equal("x\n", run("plain", { "echo", "x" }))
      local status = server:get(PODS .. "/plain").status
      assert.equal(status.hostIP, status.podIP)
      server:stop()
    end)
  end

  it("is the machine's where they would not reach the API server, and says so", function()
    server = dev.start { "--bind-address", "localhost:0" }
    server:till_said "pods share this machine's network: they would not reach the API server"
    assert.equal("x\n", run("plain", { "echo", "x" }))
    local status = server:get(PODS .. "/plain").status
    assert.equal(status.hostIP, status.podIP)
    server:stop()
  end)

  it("is refused by a wrong name, and where the API server is out of reach", function()
    local wrong = dev.command("--pod-network", "mine")
    assert.equal(2, wrong.code)
    assert.matches("--pod-network mine: expected own or host", wrong.err, 1, true)
    wrong = dev.command("--pod-network", "own", "--bind-address", "[::1]:0")
    assert.equal(2, wrong.code)
    assert.matches("with --pod-network own, expected 127.0.0.1:PORT", wrong.err, 1, true)
  end)
end)
