-- Without an API server to talk to: what is wrong with the configuration or with the server is said
-- in one line, and the exit code is 3.
local cjson = require "cjson.safe"
local dev = require "spec.host.support.dev"
local host = require "spec.e2e.support.host"
local mime = require "mime"
local shell = require "spec.e2e.support.shell"
local socket = require "socket"
local tls_server = require "spec.host.support.tls_server"
local wait = require "spec.e2e.support.wait"

local NO_CLUSTER = { KUBECONFIG = false, HOME = "/nonexistent", KUBERNETES_SERVICE_HOST = false }

local it_isolated = dev.it_unless(dev.no_namespaces, it, function(why) pending(why) end)

local function write(text)
  local path = shell.path "kubeconfig"
  shell.write(path, type(text) == "table" and cjson.encode(text) or text)
  return path
end


-- A certificate as far as its first look.
local PEM = mime.b64 "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"

-- A kubeconfig, changed by `change`.
local function config(change)
  local all = {
    apiVersion = "v1",
    kind = "Config",
    clusters = { { name = "it", cluster = { server = "https://127.0.0.1:1" } } },
    users = { { name = "it", user = { token = "t" } } },
    contexts = { { name = "it", context = { cluster = "it", user = "it" } } },
    ["current-context"] = "it",
  }
  change(all, all.clusters[1].cluster, all.users[1].user)
  return write(all)
end


local function run(path, ...)
  return host.command({ "run", "--scripts", "reconcilers/cnat.lua", "--kubeconfig", path, ... }, NO_CLUSTER)
end


-- One line on standard error, with all of these texts in it, and exit code 3.
local function assert_says(result, ...)
  assert.equal(3, result.code, result.err)
  assert.matches("^moonloop run: [^\n]+\n$", result.err)
  for _, text in ipairs { ... } do
    assert.is_truthy(result.err:find(text, 1, true), ("%q is not in: %s"):format(text, result.err))
  end
end


-- The same, by a host that does not try again.
local function assert_says_at_once(result, ...)
  assert_says(result, ...)
  assert.is_nil(result.out:find "the API server does not answer yet")
end


describe("A kubeconfig", function()
  local BAD = {
    ["that is no YAML"] = { function() return write "a: [b\nc" end },
    ["that is empty"] = { function() return write "" end },
    ["that is a list"] = { function() return write "- a\n- b\n" end, "mapping" },
    ["that is a folder"] = { function() return shell.folder "kubeconfig" end },
    ["without a current-context"] = {
      function() return config(function(all) all["current-context"] = nil end) end, "current-context",
    },
    ["whose current-context is not there"] = {
      function() return config(function(all) all["current-context"] = "other" end) end, 'no context "other"',
    },
    ["whose cluster is not there"] = {
      function() return config(function(all) all.clusters[1].name = "other" end) end, 'cluster "it"',
    },
    ["whose user is not there"] = {
      function() return config(function(all) all.users[1].name = "other" end) end, 'user "it"',
    },
    ["without a server"] = {
      function() return config(function(_, cluster) cluster["tls-server-name"], cluster.server = "x", nil end) end,
      "server",
    },
    ["with a server that is no URL"] = {
      function() return config(function(_, cluster) cluster.server = "not a url" end) end, "server",
    },
    ["whose authority is not there"] = {
      function() return config(function(_, cluster) cluster["certificate-authority"] = "/nonexistent/ca.crt" end) end,
      "/nonexistent/ca.crt",
    },
    ["whose authority is no base64"] = {
      function() return config(function(_, cluster) cluster["certificate-authority-data"] = "!!!" end) end,
      "certificate-authority-data",
    },
    ["whose token file is not there"] = {
      function() return config(function(_, _, user) user.token, user.tokenFile = nil, "/nonexistent/token" end) end,
      "/nonexistent/token",
    },
    ["with a certificate and no key"] = {
      function() return config(function(_, _, user) user["client-certificate-data"] = PEM end) end, "client-key",
    },
    ["that asks for a plugin"] = {
      function()
        return config(function(_, _, user)
          user.token, user.exec = nil, { command = "aws", apiVersion = "client.authentication.k8s.io/v1" }
        end)
      end,
      "exec",
    },
  }

  for what, case in pairs(BAD) do
    it(what .. " is refused with its path", function()
      local path = case[1]()
      assert_says_at_once(run(path), path, case[2])
    end)
  end

  it("that is missing is refused with its path", function()
    assert_says(run "/nonexistent/config", "/nonexistent/config")
  end)

  it("of which --context names what is not there is refused", function()
    local path = config(function() end)
    assert_says(run(path, "--context", "prod"), path, 'no context "prod"')
  end)

  it("may be left out only inside a cluster", function()
    local result = host.command({ "run", "--scripts", "reconcilers/cnat.lua" }, NO_CLUSTER)
    assert_says(result, "no API server is configured", "--kubeconfig", "KUBECONFIG")
  end)

  it("list of which no file exists is refused", function()
    local env = { KUBECONFIG = "/nonexistent/a:/nonexistent/b", HOME = "/nonexistent" }
    assert_says(host.command({ "run", "--scripts", "reconcilers/cnat.lua" }, env), "/nonexistent/a:/nonexistent/b")
  end)
end)


describe("A server", function()
  local server

  after_each(function()
    host.stop_all()
    if server then
      server:stop()
      server = nil
    end
  end)

  local function kubeconfig(port, authority)
    return config(function(_, cluster)
      cluster.server = "https://127.0.0.1:" .. port
      cluster["certificate-authority-data"] = authority
    end)
  end

  it("that cannot be reached is tried for ten seconds", function()
    local listener = assert(socket.bind("127.0.0.1", 0))
    local _, port = listener:getsockname()
    listener:close()
    local path = kubeconfig(port)
    local begun = wait.now()
    local result = run(path)
    local took = wait.now() - begun
    assert_says(result, "https://127.0.0.1:" .. port, path, "refused")
    assert.is_true(took > 7 and took < wait.patient(13), ("%.1f s"):format(took))
    -- A failure that repeats is logged once per doubling: two to four times, by the jitter of the client's own tries.
    local _, lines = result.out:gsub("the API server does not answer yet", "")
    assert.is_true(lines >= 2 and lines <= 4, lines .. " lines")
    assert.truthy(result.out:find('"failures":2', 1, true), result.out)
  end)

  -- Its address is no mistake of the user's, and ending would only make the kubelet wait longer each time.
  it_isolated("that cannot be reached is waited for in a pod", function()
    local listener = assert(socket.bind("127.0.0.1", 0))
    local _, port = listener:getsockname()
    listener:close()
    local account = "/run/secrets/kubernetes.io/serviceaccount"
    local moonloop = host.start {
      name = "pod", scripts = "reconcilers/cnat.lua",
      env = { KUBECONFIG = false, HOME = "/nonexistent", KUBERNETES_SERVICE_HOST = "127.0.0.1",
        KUBERNETES_SERVICE_PORT = tostring(port) },
      under = shell.line { "unshare", "-Urm", "sh", "-c", ([[
        mount -t tmpfs tmpfs /run && mkdir -p %s && printf t >%s/token && exec "$@"]]):format(account, account), "--" },
    }
    moonloop:till_log { msg = "the API server does not answer yet" }
    wait.holds("a host that waits", 13, function() return not moonloop:exit_code(), moonloop:stderr() end)
    assert.matches("not connected to the API server yet", (moonloop:get "/readyz?verbose"))
    assert.is_true(moonloop:stop() < wait.patient(2))
  end)

  it("whose certificate nobody vouches for is refused at once", function()
    server = tls_server.start()
    local path = kubeconfig(server.port)
    assert_says_at_once(run(path), "https://127.0.0.1:" .. server.port, path, "certificate")
  end)

  it("whose certificate is for another name is refused at once", function()
    server = tls_server.start()
    local path = config(function(_, cluster)
      cluster.server = "https://127.0.0.1:" .. server.port
      cluster["certificate-authority-data"] = server:certificate_data()
      cluster["tls-server-name"] = "kubernetes.example.com"
    end)
    assert_says_at_once(run(path), path, "certificate")
  end)

  it("that is no API server is refused at once", function()
    server = tls_server.start()
    local path = kubeconfig(server.port, server:certificate_data())
    assert_says_at_once(run(path), "https://127.0.0.1:" .. server.port, path)
  end)

  it("that answers with JSON of another kind is refused at once", function()
    server = tls_server.start { version = '{"hello":"world"}' }
    assert_says_at_once(run(kubeconfig(server.port, server:certificate_data())), "https://127.0.0.1:" .. server.port)
  end)

  it("that speaks no TLS is refused", function()
    local listener = assert(socket.bind("127.0.0.1", 0))
    listener:settimeout(0)
    local _, port = listener:getsockname()
    local moonloop = host.start {
      name = "plain", scripts = "reconcilers/cnat.lua", kubeconfig = kubeconfig(port), env = NO_CLUSTER,
    }
    wait.till("the host to give up", 15, function()
      local client = listener:accept()
      if client then
        client:settimeout(1)
        client:send "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        client:close()
      end
      return moonloop:exit_code()
    end)
    listener:close()
    assert.equal(3, moonloop:till_exit())
    assert.matches("^moonloop run: cannot use the API server https://127%.0%.0%.1:" .. port, moonloop:stderr())
  end)

  it("is not asked when SIGTERM comes while the kubeconfig is read", function()
    local text, pipe = kubeconfig(1), shell.path "kubeconfig"
    shell.must("mkfifo " .. pipe)
    local moonloop = host.start {
      name = "early", scripts = "reconcilers/cnat.lua", kubeconfig = pipe, env = NO_CLUSTER,
    }
    -- Opened when the host reads it.
    shell.must(("timeout 20 sh -c 'exec >%s; kill -TERM %d; cat %s'"):format(pipe, moonloop.pid, text))
    assert.equal(0, moonloop:till_exit(5))
  end)

  it("that needs to be asked again hears SIGTERM meanwhile", function()
    local moonloop = host.start {
      name = "unreachable", scripts = "reconcilers/cnat.lua", kubeconfig = kubeconfig(1), env = NO_CLUSTER,
    }
    moonloop:till_log { msg = "the API server does not answer yet" }
    assert.is_true(moonloop:stop() < wait.patient(2))
  end)

  it("is told to be missing by /readyz and not by /healthz", function()
    local moonloop = host.start {
      name = "unreachable", scripts = "reconcilers/cnat.lua", kubeconfig = kubeconfig(1), env = NO_CLUSTER,
    }
    local why, code = moonloop:get "/readyz?verbose"
    assert.equal(500, code)
    assert.matches("not connected to the API server yet", why)
    assert.equal(200, select(2, moonloop:get "/healthz"))
  end)
end)
