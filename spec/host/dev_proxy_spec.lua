-- `proxy` of pods, Services and nodes of moonloop dev: what listens in pods is reached through the API server.
local dev = require "spec.host.support.dev"
local shell = require "spec.e2e.support.shell"
local socket = require "socket"
local wait = require "spec.e2e.support.wait"

local CORE = "/api/v1/namespaces/default"
local it_isolated = dev.it_unless(dev.no_namespaces, it, function(why) pending(why) end)

-- A web server, one request at a time. At most paths it says its name and what it was sent.
local SERVER = [[
  local server = assert(require("socket").bind("*", %d))
  local name = "%s"
  local plain = {
    ["/garbage"] = "no HTTP at all\r\n\r\n",
    ["/nothing"] = "",
    ["/break"] = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nten bytes.",
    ["/redirect"] = "HTTP/1.1 302 Found\r\nLocation: /other?a=b\r\nContent-Length: 0\r\n\r\n",
    ["/page"] = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n<a href=\"/x\">",
  }
  while true do
    local client = server:accept()
    local first, lines, length = client:receive(), {}, 0
    repeat
      local line = client:receive()
      lines[#lines + 1] = line
      length = tonumber((line or ""):lower():match "^content%%-length: (%%d+)") or length
    until line == "" or not line
    local body = length > 0 and client:receive(length) or ""
    local path = (first or ""):match "^%%S+ ([^ ?]*)"
    if plain[path] then
      client:send(plain[path])
    elseif path == "/stream" then -- ends when somebody else has come who says something, as probes do not
      client:send "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n"
      local asked
      repeat
        local other = server:accept()
        asked = other:receive()
        repeat local line = asked and other:receive() until line == "" or not line
        other:send(asked and "HTTP/1.0 200 OK\r\n\r\nended" or "")
        other:close()
      until asked
      client:send "4\r\nlast\r\n0\r\n\r\n"
    elseif path == "/endless" then
      client:send "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
      local piece = "10000\r\n" .. ("z"):rep(65536) .. "\r\n"
      while client:send(piece) do
        io.write ".\n" io.flush()
      end
      print "gone"
    elseif path then
      local text = table.concat({ name, first, table.concat(lines, "\n"), body }, "\n")
      client:send("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\n"
        .. "Connection: close\r\nContent-Length: " .. #text .. "\r\n\r\n" .. (first:find "^HEAD" and "" or text))
    end
    client:close()
  end]]


local function pod(name, port)
  return { apiVersion = "v1", kind = "Pod", metadata = { name = name, labels = { app = "web" } }, spec = {
    terminationGracePeriodSeconds = 1, containers = { {
      name = "main", image = "busybox", command = { "lua5.4", "-e", SERVER:format(port, name) },
      ports = { { name = "http", containerPort = port } },
      readinessProbe = { tcpSocket = { port = "http" }, periodSeconds = 1, failureThreshold = 100 },
    } } } }
end


-- A port of the machine's that is free now.
local function free_port()
  local listener = assert(socket.bind("127.0.0.1", 0))
  local _, port = listener:getsockname()
  listener:close()
  return math.tointeger(tonumber(port))
end


local networks = {
  host = { it = it, port = free_port, lacks = false },
  own = { it = it_isolated, port = function() return 8080 end, lacks = dev.no_namespaces },
}
for network, way in pairs(networks) do
  describe("proxy, with the network " .. network, function()
    local it = way.it
    local server

    setup(function()
      if way.lacks then
        return
      end
      server = dev.start { "--pod-network", network }
      server:must("POST", CORE .. "/services", { metadata = { name = "web" }, spec = {
        selector = { app = "web" }, ports = { { name = "http", port = 80, targetPort = "http" } } } })
      for _, name in ipairs { "one", "two" } do
        server:must("POST", CORE .. "/pods", pod(name, way.port()))
      end
      wait.till("both endpoints", 20, function()
        local count = 0
        for _, subset in ipairs((server:get(CORE .. "/endpoints/web") or {}).subsets or {}) do
          count = count + #(subset.addresses or {})
        end
        return count == 2, server.host:stderr()
      end)
    end)

    teardown(dev.stop_all)

    local function ask(method, path, body, opts)
      return server:ask(method, CORE .. path, body, opts)
    end

    it("brings requests of all methods to a pod, and its answers back", function()
      for _, method in ipairs { "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS" } do
        local body = method ~= "GET" and "the body" or nil
        local code, text, headers = ask(method, "/pods/one/proxy/a%20b?x=y", body, { type = "text/plain" })
        assert.equal(200, code)
        assert.matches("^one\n" .. method .. " /a%%20b%?x=y HTTP/1%.1\n", text)
        assert.matches("\nX%-Forwarded%-For: 127%.0%.0%.1\n", text)
        assert.matches("\nX%-Forwarded%-Uri: /api/v1/namespaces/default/pods/one/proxy/a%%20b\n", text)
        assert.is_nil(text:find "Authorization")
        assert.truthy(not body or text:find "\n\nthe body$")
        assert.same({ "text/plain", "a=1, b=2" }, { headers["content-type"], headers["set-cookie"] })
      end
      local code, text, headers = ask("HEAD", "/pods/one/proxy/")
      assert.same({ 200, "" }, { code, text or "" })
      assert.truthy(tonumber(headers["content-length"]) > 20)
    end)

    it("brings requests to one or the other endpoint of a Service", function()
      local seen = {}
      for _ = 1, 30 do
        local code, text = ask("GET", "/services/web:80/proxy/")
        assert.equal(200, code)
        seen[text:match "^%S+"] = true
      end
      if network == "own" then -- in the machine's, pods have one address, and a Service has the first one's port
        assert.same({ one = true, two = true }, seen)
      end
    end)

    it("follows no redirect, and rewrites links", function()
      local stream = server:connect()
      stream:send(("GET %s/pods/one/proxy/redirect HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n"):format(
        CORE, server.token))
      assert.equal("HTTP/1.1 302 Found", stream:receive())
      local location
      repeat
        local line = stream:receive()
        location = line:match "^Location: (.*)" or location
      until line == ""
      assert.equal(CORE .. "/pods/one/proxy/other?a=b", location)
      stream:close()
      local _, page = ask("GET", "/pods/one/proxy/page")
      assert.equal(('<a href="%s/pods/one/proxy/x">'):format(CORE), page)
    end)

    it("is what kubectl asks", function()
      local text = shell.run(("kubectl --kubeconfig %s get --raw '%s/services/web:http/proxy/path?x=y' 2>&1"):format(
        shell.quote(server.kubeconfig), CORE))
      assert.matches("GET /path%?x=y HTTP", text)
      text = shell.run(("kubectl --kubeconfig %s get --raw /api/v1/nodes/moonloop/proxy/healthz 2>&1"):format(
        shell.quote(server.kubeconfig)))
      assert.equal("ok", text)
    end)

    it("passes a stream on as it comes", function()
      local stream = server:connect()
      stream:send(("GET %s/pods/one/proxy/stream HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n"):format(
        CORE, server.token))
      repeat local line = assert(stream:receive()) until line == ""
      assert.same({ "5", "first" }, { stream:receive(), stream:receive() })
      assert.equal(200, (ask("GET", "/pods/one/proxy/end")))
      assert.same({ "4", "last", "0" }, { stream:receive(), stream:receive(), stream:receive() })
      stream:close()
    end)

    it("lets a pod wait whose client does not read, and stops it when that has gone", function()
      local client = io.popen(("exec curl -sN --cacert %s -H 'Authorization: Bearer %s' https://127.0.0.1:%d%s"):format(
        server.ca, server.token, server.port, CORE .. "/pods/two/proxy/endless"))
      assert.equal("z", client:read(1))
      local function sent()
        local log = server:must("GET", CORE .. "/pods/two/log")
        return select(2, log:gsub("%.\n", "")), log
      end
      -- The kernel's buffers are full, and ours: it sends no more, however often one looks.
      local before, looks = 0, 0
      wait.till("the pod to wait", 20, function()
        local now = sent()
        looks = now > 0 and now == before and looks + 1 or 0
        before = now
        return looks == 10
      end)
      assert.truthy(before < 64 * 16, "64 KiB each, and more than 64 MiB") -- most of it is in the kernel
      client:close()
      wait.till("the pod to see that nobody listens", 20, function()
        return select(2, sent()):find "gone"
      end)
    end)

    it("says what is wrong with a pod's answer", function()
      local code, status = ask("GET", "/pods/one/proxy/garbage")
      assert.equal(503, code)
      assert.matches("^error trying to reach service: .*speaks no HTTP", status.message)
      code, status = ask("GET", "/pods/one/proxy/nothing")
      assert.same({ 503, "error trying to reach service: EOF" }, { code, status.message })
      code = ask("GET", "/pods/one/proxy/break")
      assert.is_nil(code, "it is cut")
      code, status = ask("GET", "/pods/one:1/proxy/")
      assert.equal(503, code)
      assert.matches("^error trying to reach service: dial tcp [%d.]+:1: connect: connection refused$", status.message)
      assert.equal(200, (ask("GET", "/pods/one/proxy/still-there")))
    end)
  end)
end


describe("proxy, where pods are no processes", function()
  after_each(dev.stop_all)

  it("finds nothing that listens", function()
    local server = dev.start { "--pods", "fake" }
    server:must("POST", CORE .. "/pods", pod("one", 8080))
    local status = wait.till("the pod to have an address", 10, function()
      local code, answer = server:ask("GET", CORE .. "/pods/one/proxy/")
      return code == 503 and answer
    end)
    assert.matches("^error trying to reach service: dial tcp 10%.244%.%d+%.%d+:8080: connect: connection refused$",
      status.message)
  end)
end)
