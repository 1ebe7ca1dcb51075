local host = require "cluster.host"
local testpods = require "testpods"
local testserver = require "testserver"
local testwebhooks = require "testwebhooks"

local CORE = "/api/v1/namespaces/default"
local WEB = CORE .. "/pods/web/proxy"
local SERVICE = CORE .. "/services/"
local MIB = 1024 * 1024


describe("proxy", function()
  local server, calls, answer

  before_each(function()
    server = testserver.new()
    answer = function(options)
      options.head(200, { { "Content-Length", "5" } })
      options.data "hello"
      options.done()
    end
    calls = testpods.install(server, function(...) answer(...) end)
    testpods.pod(server, "web", "10.244.0.2", { { containerPort = 8080 }, { containerPort = 9090 } })
  end)

  after_each(testpods.remove)

  -- Sends a request, and lets the pod answer.
  local function send(method, path, body, headers)
    local reply = server:send(method, path, body, headers)
    server:settle()
    return reply
  end

  local function message(reply)
    return reply.code .. " " .. host.json.decode(reply.body).message
  end

  it("passes a request on to the pod's first port, and the answer back", function()
    local reply = send("POST", WEB .. "/a%20b/c?x=y&z", "body",
      { ["content-type"] = "text/plain", accept = "text/html", host = "api:6443" })
    assert.same({ 200, "hello", true }, { reply.code, table.concat(reply.chunks), reply.finished })
    local sent = calls[1].options
    assert.same({ "POST", "http://10.244.0.2:8080/a%20b/c?x=y&z", "body" }, { sent.method, sent.url, sent.body })
    assert.same({ ["Content-Type"] = "text/plain", Accept = "text/html", Host = "api:6443", ["User-Agent"] = "spec",
      ["X-Forwarded-Uri"] = WEB .. "/a%20b/c" }, sent.headers)
    assert.same({ insecure = true }, calls.client)
  end)

  for name, place in pairs {
    ["web:9090"] = "http://10.244.0.2:9090/", ["https:web:"] = "https://10.244.0.2:8080/",
    ["https:web:8443"] = "https://10.244.0.2:8443/", ["http:web:1"] = "http://10.244.0.2:1/",
  } do
    it("of the pod " .. name .. " goes to " .. place, function()
      assert.equal(200, send("GET", CORE .. "/pods/" .. name .. "/proxy/").code)
      assert.equal(place, calls[1].options.url)
    end)
  end

  it("goes to port 80 of a pod that names none", function()
    testpods.pod(server, "plain", "10.244.0.3")
    send("GET", CORE .. "/pods/plain/proxy/")
    assert.equal("http://10.244.0.3/", calls[1].options.url)
  end)

  for path, url in pairs {
    ["/proxy//a//b/"] = "/a/b/", ["/proxy/a/../b/./c"] = "/b/c", ["/proxy/a%3Fb%25"] = "/a%3Fb%25",
    ["/proxy/(a)!*'"] = "/%28a%29%21%2A%27", ["/proxy/a+b:c@d;e=f,g&h"] = "/a+b:c@d;e=f,g&h", ["/proxy/a%2Fb"] = "/a/b",
  } do
    it("has paths as Go writes them: " .. path, function()
      send("GET", CORE .. "/pods/web" .. path)
      assert.equal("http://10.244.0.2:8080" .. url, calls[1].options.url)
    end)
  end

  it("without a slash at its end is elsewhere, for those who read", function()
    local reply = send("GET", WEB .. "?a=b")
    assert.same({ 301, "", { Location = WEB .. "/?a=b" } }, { reply.code, reply.body, reply.headers })
    assert.equal(301, send("HEAD", WEB).code)
    assert.equal(0, #calls)
    send("DELETE", WEB)
    assert.equal("http://10.244.0.2:8080/", calls[1].options.url)
    assert.equal(WEB .. "/", calls[1].options.headers["X-Forwarded-Uri"])
  end)

  it("takes out what was said to the API server alone, or to the next hop", function()
    server.server:handle({ method = "GET", path = WEB .. "/", query = "", body = "", client = "192.0.2.7", headers = {
      authorization = "Bearer t", ["impersonate-user"] = "u", connection = "keep-alive, X-Own", ["x-own"] = "1",
      te = "gzip, trailers", ["keep-alive"] = "5", ["proxy-authorization"] = "p", ["transfer-encoding"] = "chunked",
      ["x-forwarded-for"] = "192.0.2.1", cookie = "a=b", expect = "100-continue", ["content-length"] = "0",
    } }, setmetatable({}, { __index = { send = function() end, start = function() end, write = function() return 0 end,
      finish = function() end } }))
    server:settle()
    assert.same({ Te = "trailers", ["X-Forwarded-For"] = "192.0.2.1, 192.0.2.7", Cookie = "a=b",
      ["X-Forwarded-Uri"] = WEB .. "/" }, calls[1].options.headers)
  end)

  it("takes out of the answer what is not for the client", function()
    answer = function(options)
      options.head(418, { { "content-type", "text/plain" }, { "Set-Cookie", "a=1" }, { "set-cookie", "b=2" },
        { "Connection", "close, X-Own" }, { "X-Own", "1" }, { "Transfer-Encoding", "chunked" },
        { "Access-Control-Allow-Origin", "*" }, { "x-strange", "" }, { "no name", "1" } })
      options.done()
    end
    local reply = send("GET", WEB .. "/")
    assert.same({ 418, "text/plain" }, { reply.code, reply.kind })
    assert.same({ ["Set-Cookie"] = { "a=1", "b=2" }, ["X-Strange"] = { "" } }, reply.headers)
  end)

  for location, shown in pairs {
    ["/b/?x=y"] = WEB .. "/b/?x=y", ["http://10.244.0.2:8080/c"] = WEB .. "/c", ["relative/x"] = "relative/x",
    ["http://other/d"] = "http://other/d", ["http://api:6443/e"] = "http://api:6443" .. WEB .. "/e",
    [WEB .. "/f"] = WEB .. "/f", ["/g%20h#i"] = WEB .. "/g%20h#i", ["/"] = WEB .. "/",
  } do
    it("does not follow a redirect, but sends the client through: " .. location, function()
      answer = function(options)
        options.head(302, { { "Location", location }, { "Content-Type", "text/html" } })
        options.data '<a href="/x">'
        options.done()
      end
      local reply = send("GET", WEB .. "/a", nil, { host = "api:6443" })
      assert.same({ 302, shown, '<a href="/x">' },
        { reply.code, reply.headers.Location, table.concat(reply.chunks) })
    end)
  end

  it("says so where a redirect cannot be read", function()
    answer = function(options) options.head(302, { { "Location", "/%zz" } }) end
    local reply = send("GET", WEB .. "/a")
    assert.matches("^500 .*error trying to parse Location header: .*invalid URL escape", message(reply))
    assert.is_true(calls[1].cancelled)
  end)

  it("rewrites the links of a page", function()
    answer = function(options)
      options.head(200, { { "Content-Type", "text/html; charset=utf-8" }, { "Content-Length", "40" } })
      options.data '<p>/a<a class=b hr'
      options.data 'ef="/x?a=1&amp;b">/y</a><img src=http://else/z>'
      options.done()
    end
    local reply = send("GET", WEB .. "/sub/page")
    assert.equal('<p>/a<a class=b href="' .. WEB .. '/x?a=1&amp;b">/y</a><img src=http://else/z>',
      table.concat(reply.chunks))
    assert.is_nil(reply.headers["Content-Length"])
  end)

  it("leaves a page alone that is compressed, or only asked for", function()
    answer = function(options)
      options.head(200, { { "Content-Type", "text/html" }, { "Content-Encoding", "gzip" }, { "Content-Length", "13" } })
      options.data '<a href="/x">'
      options.done()
    end
    local reply = send("GET", WEB .. "/")
    assert.same({ '<a href="/x">', { "13" } }, { table.concat(reply.chunks), reply.headers["Content-Length"] })
    answer = function(options)
      options.head(200, { { "Content-Type", "text/html" }, { "Content-Length", "13" } })
      options.done()
    end
    assert.same({ "13" }, send("HEAD", WEB .. "/").headers["Content-Length"])
  end)

  for why, said in pairs {
    ["connect to 10.244.0.2:8080: connection refused"] = "dial tcp 10.244.0.2:8080: connect: connection refused",
    ["connect to 10.244.0.2:8080: no route to host"] = "dial tcp 10.244.0.2:8080: connect: no route to host",
    ["connection to 10.244.0.2:8080 broke: closed without an answer"] = "EOF",
    ["10.244.0.2:8080 speaks no HTTP"] = "10.244.0.2:8080 speaks no HTTP",
  } do
    it("tells why a pod gave no answer: " .. why, function()
      answer = function(options) options.done(why, "network") end
      assert.equal("503 error trying to reach service: " .. said, message(send("GET", WEB .. "/")))
    end)
  end

  it("tells that a connection took too long", function()
    answer = function(options) options.done("connect to 10.244.0.2:8080: no connection within 30 s", "timeout") end
    assert.equal("503 error trying to reach service: dial tcp 10.244.0.2:8080: i/o timeout",
      message(send("GET", WEB .. "/")))
    assert.equal(30, calls[1].options.connect_seconds)
  end)

  it("cuts an answer that the pod breaks off", function()
    answer = function(options)
      options.head(200, {})
      options.data "ten"
      options.done("answer of 10.244.0.2:8080 was cut", "network")
    end
    local reply = send("GET", WEB .. "/")
    assert.same({ "ten", true }, { reply.chunks[1], reply.aborted })
    assert.is_nil(reply.finished)
  end)

  it("ends with its client", function()
    answer = function() end
    local reply = send("GET", WEB .. "/")
    reply.on_close()
    assert.is_true(calls[1].cancelled)
  end)

  it("ends with its client also when somebody listens to requests", function()
    local records = {}
    server.server:audit(function(record) records[#records + 1] = record end)
    answer = function() end
    local reply = send("GET", WEB .. "/")
    assert.equal(0, #records)
    reply.on_close()
    assert.is_true(calls[1].cancelled)
    assert.same({ "proxy", "web" }, { records[1].subresource, records[1].name })
  end)

  describe("of a client that reads slowly", function()
    local reply, options

    before_each(function()
      answer = function(asked)
        options = asked
        options.head(200, {})
      end
      reply = send("GET", WEB .. "/")
      reply.waiting = 2 * MIB
      options.data "much"
    end)

    it("lets the pod wait until it has read", function()
      assert.is_true(calls[1].paused)
      server:pass(30)
      assert.is_true(calls[1].paused)
      reply.waiting = MIB - 1
      server:pass(1)
      assert.is_false(calls[1].paused)
      options.done()
      assert.is_true(reply.finished)
    end)

    -- Lets so many seconds pass, one by one.
    local function pass(seconds)
      for _ = 1, seconds do
        server:pass(1)
      end
    end

    it("goes on as long as it reads anything", function()
      for _ = 1, 5 do
        pass(50)
        reply.waiting = reply.waiting - 1
      end
      assert.is_nil(reply.aborted)
      assert.is_true(calls[1].paused)
    end)

    it("is cut when it reads nothing for a minute", function()
      pass(58)
      assert.is_nil(reply.aborted)
      pass(4)
      assert.same({ true, true }, { reply.aborted, calls[1].cancelled })
    end)

    it("is over when the client goes", function()
      reply.on_close()
      server:pass(100)
      assert.is_true(calls[1].cancelled)
      assert.is_nil(reply.aborted)
    end)
  end)

  it("is refused where it wants to speak something else, or in another way", function()
    assert.matches("^501 .*WebSockets", message(send("GET", WEB .. "/", nil,
      { connection = "Upgrade", upgrade = "websocket" })))
    assert.equal("400 dryRun is not supported", message(send("POST", WEB .. "/?dryRun=All", "x")))
    assert.equal(405, send("TRACE", WEB .. "/").code)
    assert.equal(413, send("POST", WEB .. "/", ("x"):rep(3 * MIB + 1)).code)
    assert.equal(0, #calls)
  end)

  for address, ok in pairs {
    ["127.0.0.1"] = false, ["169.254.1.1"] = false, ["224.0.0.1"] = false, ["0.0.0.0"] = false, ["172.17.0.2"] = true,
  } do
    it((ok and "reaches" or "does not reach") .. " a pod at " .. address, function()
      testpods.pod(server, "other", address)
      local reply = send("GET", CORE .. "/pods/other/proxy/")
      assert.equal(ok and 200 or 400, reply.code)
    end)
  end

  it("reaches pods at the loopback of a machine that has no other address", function()
    server:must("POST", "/api/v1/nodes", { metadata = { name = "moonloop" } })
    server:patch("merge", "/api/v1/nodes/moonloop/status",
      { status = { addresses = { { type = "InternalIP", address = "127.0.0.1" } } } })
    testpods.pod(server, "other", "127.0.0.1")
    assert.equal(200, send("GET", CORE .. "/pods/other/proxy/").code)
  end)

  it("finds nothing that listens where pods are no processes", function()
    server.server.has_real_pods = false
    assert.equal("503 error trying to reach service: dial tcp 10.244.0.2:8080: connect: connection refused",
      message(send("GET", WEB .. "/")))
    assert.equal(0, #calls)
  end)

  it("is asked of roles by its own name", function()
    server = testserver.new { authorization = "rbac", tokens = { t = { name = "u", groups = {} } } }
    local reply = server:send("POST", WEB .. "/", nil, { authorization = "Bearer t" })
    assert.matches('^403 pods "web" is forbidden: User "u" cannot create resource "pods/proxy"', message(reply))
    reply = server:send("GET", "/api/v1/nodes/n/proxy/healthz", nil, { authorization = "Bearer t" })
    assert.matches('cannot get resource "nodes/proxy"', message(reply))
  end)

  for kind, path in pairs {
    PodProxyOptions = WEB .. "/a/b", ServiceProxyOptions = SERVICE .. "s/proxy/a/b",
    NodeProxyOptions = "/api/v1/nodes/n/proxy/a/b",
  } do
    it("is asked of webhooks with its " .. kind, function()
      local asked
      testwebhooks.install(function(request)
        asked = request
        return { allowed = false, status = { message = "no way" } }
      end)
      testwebhooks.configure(server, "validating", { rules = { {
        apiGroups = { "" }, apiVersions = { "v1" }, operations = { "CONNECT" }, resources = { "*/proxy" },
      } } })
      assert.matches("^400 .*no way", message(server:send("GET", path)))
      assert.same({ kind = kind, apiVersion = "v1", path = "/a/b" }, asked.object)
      assert.same({ "CONNECT", "proxy" }, { asked.operation, asked.subResource })
    end)
  end

  describe("of a Service", function()
    before_each(function()
      testpods.pod(server, "two", "10.244.0.3")
      server:must("POST", CORE .. "/services", { metadata = { name = "s" }, spec = {
        ports = { { name = "http", port = 80, targetPort = 8080 }, { name = "other", port = 81 } } } })
      local addresses = {}
      for i, pod in ipairs { "web", "two" } do
        addresses[i] = { ip = "10.244.0." .. i + 1, targetRef = { kind = "Pod", name = pod, namespace = "default" } }
      end
      server:must("POST", CORE .. "/endpoints", { metadata = { name = "s" },
        subsets = { { addresses = addresses, ports = { { name = "http", port = 8080 } } } } })
    end)

    it("goes to one or the other of its endpoints", function()
      local seen = {}
      for _ = 1, 40 do
        send("GET", SERVICE .. "s:80/proxy/x")
        seen[calls[#calls].options.url] = true
      end
      assert.same({ ["http://10.244.0.2:8080/x"] = true, ["http://10.244.0.3:8080/x"] = true }, seen)
    end)

    it("goes to a port by its name, by TLS", function()
      assert.equal(200, send("GET", SERVICE .. "https:s:http/proxy/").code)
      assert.matches("^https://10%.244%.0%.[23]:8080/$", calls[1].options.url)
    end)

    it("does not go to what is no pod any more, or another one", function()
      server:must("DELETE", CORE .. "/pods/two", { gracePeriodSeconds = 0 })
      server:patch("merge", CORE .. "/pods/web/status", { status = { podIP = "10.244.0.9",
        podIPs = { { ip = "10.244.0.9" } } } })
      assert.equal('503 no endpoints available for service "s:http"', message(send("GET", SERVICE .. "s:http/proxy/")))
    end)

    it("says which port there is not", function()
      assert.equal('503 no service port 82 found for service "s"', message(send("GET", SERVICE .. "s:82/proxy/")))
      assert.equal('503 no endpoints available for service "s:81"', message(send("GET", SERVICE .. "s:81/proxy/")))
      assert.equal('503 no endpoints available for service "s"', message(send("GET", SERVICE .. "s/proxy/")))
    end)
  end)
end)
