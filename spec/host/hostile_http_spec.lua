-- Clients that mean harm, at the servers of moonloop dev (over TLS) and of moonloop run (probes and metrics): none of
-- them ends a server, makes it grow, or keeps it from an honest client. The units of net/http_server.c test with short
-- times that slow connections are cut; here they stay open while honest requests are answered.
local dev = require "spec.host.support.dev"
local hostile = require "spec.host.support.hostile"
local host = require "spec.e2e.support.host"
local shell = require "spec.e2e.support.shell"
local socket = require "socket"
local ssl = require "ssl"
local wait = require "spec.e2e.support.wait"

local CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
local MIB = 1024 * 1024

-- The sanitizer keeps some of what is freed, and puts something around each block.
local SANITIZED = shell.run("grep -c __asan_init " .. shell.quote(host.binary)) ~= "0\n"

-- MiB that a server may grow by in all of this. Answers that wait to be sent may take 64 MiB, requests that come in as
-- much, and making a list of 10 MiB leaves garbage.
local GROWTH_MAX = SANITIZED and 320 or 200

-- MiB that fifty watchers may take who never read 200 changes of 100 kB; 16 MiB of it is what is remembered of them.
local WATCHERS_MAX = SANITIZED and 120 or 50

local ENV = { ASAN_OPTIONS = (os.getenv "ASAN_OPTIONS" or "") .. ":quarantine_size_mb=8" }


describe("against hostile clients", function()
  local server, operator, targets

  local function resident(pid)
    local pages = assert(shell.read(("/proc/%d/statm"):format(pid)), "the process has ended"):match "^%d+ (%d+)"
    return tonumber(pages) * 4096 / MIB
  end

  setup(function()
    server = dev.start({ "--pods", "none" }, { env = ENV })
    operator = host.start { name = "run", scripts = "reconcilers/cnat.lua", kubeconfig = server.kubeconfig, env = ENV }
    operator:get "/healthz"
    targets = {
      dev = {
        pid = server.host.pid, token = server.token, path = CONFIGMAPS,
        connect = function() return server:connect() end,
        ask = function() return (server:ask("GET", "/version")) end,
      },
      run = {
        pid = operator.pid, path = "/metrics",
        connect = function() return assert(socket.connect("127.0.0.1", operator.port)) end,
        ask = function()
          local _, code = operator:get "/healthz"
          return code
        end,
      },
    }
    for _, target in pairs(targets) do
      target.ask()
      target.resident = resident(target.pid)
    end
  end)

  teardown(dev.stop_all)

  -- The server lives, answers an honest client soon, and has not grown.
  local function check_serves(target)
    local begun = wait.now()
    assert.equal(200, target.ask())
    assert.is_true(wait.now() - begun < wait.patient(1), "the honest client waited " .. wait.now() - begun .. " s")
    local grown = resident(target.pid) - target.resident
    assert.is_true(grown < GROWTH_MAX, ("it has grown by %.0f MiB"):format(grown))
  end

  -- Sends bytes; the code of the answer, or nil and why there is none. The connection stays open.
  local function code_of(connection, bytes, seconds)
    connection:settimeout(10)
    connection:send(bytes) -- and may be refused before all has been sent
    connection:settimeout(seconds or 10)
    local line, why = connection:receive "*l"
    return line and line:match "^HTTP/1%.%d (%d+) " or nil, line or why
  end

  -- One case at one server.
  local function try(name, text, answer)
    local target = targets[name]
    local connection = target.connect()
    local code, what = code_of(connection, hostile.bytes(text, target.token, target.path), answer and 10 or 0.05)
    check_serves(target)
    connection:close()
    if answer then
      assert.matches("^" .. answer .. "$", code or what)
      assert.is_not.equal("500", code)
    else
      assert.is_nil(code)
    end
  end

  for _, group in ipairs { hostile.HEADS, hostile.BODIES } do
    for _, case in ipairs(group) do
      it("holds: " .. case[1], function()
        try("dev", case[2], case[3])
        try("run", case[2], case[3])
      end)
    end
  end

  it("gives nothing away for a path that is none", function()
    for _, path in ipairs(hostile.PATHS) do
      for name, target in pairs(targets) do
        local connection = target.connect()
        assert(connection:send(hostile.bytes(hostile.get(path), target.token, target.path)))
        connection:settimeout(10)
        local answer, _, partial = connection:receive "*a"
        answer = answer or partial
        connection:close()
        assert.matches("^HTTP/1%.%d [24]%d%d ", answer, 1, false)
        assert.is_nil(answer:find("root:", 1, true), name .. " " .. path)
        assert.is_nil(answer:lower():match "\r\nx%-injected:" or answer:lower():match "\r\nset%-cookie:", path)
      end
    end
    check_serves(targets.dev)
    check_serves(targets.run)
  end)

  it("lets nobody in without the token", function()
    for _, path in ipairs { "/", "/api", "/apis", "/openapi/v2", "/api/v1/secrets", "/metrics", "/nonsense" } do
      local code, answer = server:ask("GET", path, nil, { token = false })
      assert.same({ 401, "Unauthorized", "Unauthorized" }, { code, answer.reason, answer.message }, path)
    end
    for _, method in ipairs { "POST", "PUT", "PATCH", "DELETE", "OPTIONS" } do
      assert.equal(401, (server:ask(method, CONFIGMAPS .. "/x", "{}", { token = false })), method)
    end
  end)

  it("lets nobody in with what is not quite the token", function()
    for _, words in ipairs(hostile.CREDENTIALS) do
      local value = words:gsub("TOKEN", server.token)
      local connection = server:connect()
      local request = "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\n\r\n"
      local code = code_of(connection, request:format(CONFIGMAPS, value))
      connection:close()
      assert.matches("^40[01] ", code .. " " .. words, 1, false)
    end
    check_serves(targets.dev)
  end)

  it("answers a thousand requests that were sent at once", function()
    for name, target in pairs(targets) do
      local connection = target.connect()
      local one = hostile.bytes("GET /healthz HTTP/1.1\r\nHOSTAUTH\r\n", target.token, "")
      connection:settimeout(20)
      assert(connection:send(one:rep(999) .. one:gsub("\r\n\r\n$", "\r\nConnection: close\r\n\r\n")))
      local answer, _, partial = connection:receive "*a"
      local _, count = (answer or partial):gsub("HTTP/1%.1 200 OK", "")
      assert.equal(1000, count, name)
      check_serves(target)
    end
  end)

  it("serves others beside a thousand that never speak", function()
    for name, target in pairs(targets) do
      local port = name == "dev" and server.port or operator.port
      local silent, before = {}, tonumber(shell.must(("ls /proc/%d/fd | wc -l"):format(target.pid)))
      for i = 1, 1000 do
        silent[i] = socket.connect("127.0.0.1", port)
      end
      check_serves(target)
      local now = tonumber(shell.must(("ls /proc/%d/fd | wc -l"):format(target.pid)))
      assert.is_true(now - before <= 1024, now)
      for _, connection in pairs(silent) do
        connection:close()
      end
      check_serves(target)
    end
  end)

  it("serves others beside those who send a byte now and then", function()
    for _, target in pairs(targets) do
      local slow = {}
      for i = 1, 20 do
        slow[i] = target.connect()
        slow[i]:send "GET /healthz HTTP/1.1\r\nX: "
      end
      for _ = 1, 10 do
        for _, connection in ipairs(slow) do
          assert(connection:send "x")
        end
      end
      check_serves(target)
      for _, connection in ipairs(slow) do
        connection:close()
      end
    end
  end)

  it("is not harmed by what is no handshake", function()
    for _, bytes in ipairs { "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", ("\x16"):rep(70000), ("\x80"):rep(1000),
      "\x16\x03\x01\xff\xff" .. ("\x00"):rep(70000), "\x15\x03\x03\x00\x02\x02\x28", "GET / HTTP/1.1\r\n\r\n", "\0" } do
      local connection = assert(socket.connect("127.0.0.1", server.port))
      connection:settimeout(1)
      connection:send(bytes)
      check_serves(targets.dev)
      connection:close()
    end
  end)

  it("speaks no old TLS", function()
    for _, protocol in ipairs { "tlsv1", "tlsv1_1" } do
      local connection = assert(socket.connect("127.0.0.1", server.port))
      connection:settimeout(5)
      local wrapped = ssl.wrap(connection, { mode = "client", protocol = protocol, verify = "none" })
      assert.is_falsy(wrapped and wrapped:dohandshake(), protocol)
    end
    check_serves(targets.dev)
  end)

  it("forgets uploads that end in the middle, and keeps few that do not", function()
    for name, target in pairs(targets) do
      local open = {}
      local head = "POST PATH HTTP/1.1\r\nHOSTAUTHContent-Length: 3000000\r\n\r\n"
      head = hostile.bytes(head, target.token, target.path)
      for i = 1, 40 do
        open[i] = target.connect()
        open[i]:settimeout(0.5)
        open[i]:send(head .. (" "):rep(name == "dev" and 2900000 or 60000))
      end
      check_serves(target)
      for _, connection in ipairs(open) do
        connection:close()
      end
      check_serves(target)
    end
  end)

  it("keeps serving who has closed its sending side, or not", function()
    for i = 1, 50 do
      local connection = assert(socket.connect("127.0.0.1", operator.port))
      assert(connection:send "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
      if i % 2 == 0 then
        connection:shutdown "send"
      end
      connection:close()
    end
    check_serves(targets.run)
  end)

  describe("that never read", function()
    -- Connections that have asked for a path and read only the first line of the answer.
    local function readers(count, path)
      local list = {}
      for i = 1, count do
        list[i] = server:connect()
        local code = code_of(list[i], hostile.bytes("GET PATH HTTP/1.1\r\nHOSTAUTH\r\n", server.token, path))
        assert.equal("200", code)
      end
      return list
    end

    local function close(list)
      for _, connection in ipairs(list) do
        connection:close()
      end
    end

    it("watches cost no more than what they are written once", function()
      server:must("POST", CONFIGMAPS, { metadata = { name = "big" }, data = { k = "" } })
      local watchers, before = readers(50, CONFIGMAPS .. "?watch=true"), resident(server.host.pid)
      for i = 1, 200 do
        server:must("PUT", CONFIGMAPS .. "/big",
          { metadata = { name = "big" }, data = { k = ("x"):rep(100000), n = tostring(i) } })
      end
      local grown = resident(server.host.pid) - before
      assert.is_true(grown < WATCHERS_MAX, ("it has grown by %.0f MiB"):format(grown))
      assert.is_truthy(server.host:stderr():find("a watch was cut: its client does not read", 1, true))
      check_serves(targets.dev)
      close(watchers)
    end)

    it("lists cost no more than 64 MiB", function()
      for i = 1, 20 do
        server:must("POST", CONFIGMAPS, { metadata = { name = "l" .. i }, data = { k = ("x"):rep(500000) } })
      end
      close(readers(50, CONFIGMAPS))
      check_serves(targets.dev)
      server:must("DELETE", CONFIGMAPS)
    end)
  end)

  it("has logged no mistake of its own", function()
    assert.is_nil(server.host:stderr():match "[^\n]*by a mistake of the server[^\n]*")
    assert.is_nil(server.host:stderr():match "[^\n]*a request failed[^\n]*")
  end)
end)
