-- The kubelet's answers through `proxy` of its node.
local fake_runtime = require "cluster.kubelet.fake_runtime"
local kubelet = require "cluster.kubelet"
local testserver = require "testserver"

local NODE = "/api/v1/nodes/moonloop/proxy"
local PODS = "/api/v1/namespaces/default/pods"

local LOG = { "2026-01-01T00:00:00.000000Z F one\n", "2026-01-01T00:00:01.000000Z F two\n" }


describe("the kubelet, through its node's proxy", function()
  local server

  before_each(function()
    server = testserver.new()
    local logs = {}
    function logs.find(_, pod, container)
      return pod.metadata.name == "a" and container == "c" and {
        is_closed = true,
        lines = function()
          local i = 0
          return function()
            i = i + 1
            return LOG[i]
          end
        end,
      } or nil
    end
    kubelet.new(server.server, { runtime = fake_runtime.new(), logs = logs }):start()
    for _, name in ipairs { "a", "b" } do
      server:must("POST", PODS, { metadata = { name = name }, spec = { containers = { { name = "c", image = "i" } } } })
    end
    server:must("POST", PODS, { metadata = { name = "elsewhere" },
      spec = { nodeName = "other", containers = { { name = "c", image = "i" } } } })
    server:settle()
  end)

  it("is well", function()
    for _, port in ipairs { "", ":10250" } do
      local reply = server:send("GET", "/api/v1/nodes/moonloop" .. port .. "/proxy/healthz")
      assert.same({ 200, "text/plain; charset=utf-8", "ok" }, { reply.code, reply.kind, reply.body })
    end
  end)

  it("has its own pods", function()
    local code, list = server:call("GET", NODE .. "/pods")
    assert.same({ 200, "PodList", { "a", "b" } }, { code, list.kind, testserver.names(list) })
    assert.equal("moonloop", list.items[1].spec.nodeName)
  end)

  it("has logs of their containers", function()
    local reply = server:send("GET", NODE .. "/containerLogs/default/a/c?tailLines=1&timestamps=true")
    assert.same({ 200, "2026-01-01T00:00:01.000000Z two\n" }, { reply.code, table.concat(reply.chunks) })
  end)

  it("has all of a log since any time that can be asked for", function()
    for _, seconds in ipairs { 1, 10 ^ 10 // 1 | 0, math.maxinteger } do
      local reply = server:send("GET", NODE .. "/containerLogs/default/a/c?sinceSeconds=" .. seconds)
      assert.same({ 200, "one\ntwo\n" }, { reply.code, table.concat(reply.chunks) })
    end
  end)

  for path, want in pairs {
    ["/containerLogs/default/none/c"] = '404 pod "none" does not exist',
    ["/containerLogs/default/elsewhere/c"] = '404 pod "elsewhere" does not exist',
    ["/containerLogs/default/a/d"] = '404 container "d" not found in pod "a"',
    ["/containerLogs/default/b/c"] = '400 container "c" in pod "b" is not available',
    ["/containerLogs/default/a"] = "404 404: Page Not Found", ["/metrics"] = "404 404: Page Not Found",
    ["/"] = "404 404: Page Not Found",
  } do
    it("says what it does not have: " .. path, function()
      local reply = server:send("GET", NODE .. path)
      assert.equal(want, reply.code .. " " .. reply.body)
    end)
  end

  it("takes no orders", function()
    assert.equal(405, server:send("POST", NODE .. "/pods").code)
    assert.equal(301, server:send("GET", NODE).code)
  end)

  it("is the only one who answers for its node", function()
    server:must("POST", "/api/v1/nodes", { metadata = { name = "other" } })
    server:patch("merge", "/api/v1/nodes/other/status",
      { status = { addresses = { { type = "InternalIP", address = "192.0.2.9" } } } })
    local code, status = server:call("GET", "/api/v1/nodes/other/proxy/healthz")
    assert.same({ 503, "error trying to reach service: dial tcp 192.0.2.9:10250: connect: connection refused" },
      { code, status.message })
    code, status = server:call("GET", "/api/v1/nodes/moonloop:80/proxy/")
    assert.same({ 503, "error trying to reach service: dial tcp 192.0.2.1:80: connect: connection refused" },
      { code, status.message })
  end)
end)
