--- Watches and logs by WebSocket: the handshake, messages, the end, and clients that never read.
local client = require "teststreams"
local host = require "cluster.host"
local log_subresource = require "cluster.kubelet.log_subresource"
local testserver = require "testserver"

local CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
local MIB = 1024 * 1024


-- Asks for a WebSocket. @param more table? headers that differ @return table reply of a client
local function ask(server, path, more)
  local request, reply = client.websocket_request(), client.reply()
  request.headers.origin = "http://localhost"
  for name, value in pairs(more or {}) do
    request.headers[name] = value or nil
  end
  local plain, query = path:match "^([^?]*)%??(.*)$"
  server:handle({ method = "GET", path = plain, query = query, headers = request.headers, body = "" }, reply)
  return reply
end


-- The messages sent since the last call, each with the first byte of its frame.
local function taken(reply)
  return client.frames(reply:take())
end


describe("a watch by WebSocket", function()
  local world
  before_each(function() world = testserver.new { accounts = false } end)

  local function types(reply)
    local list = {}
    for i, frame in ipairs(taken(reply)) do
      assert.equal(0x81, frame.first)
      assert.equal("\n", frame.payload:sub(-1))
      local event = host.json.decode(frame.payload)
      list[i] = event.type .. " " .. (event.object.metadata.name or event.object.reason)
    end
    return list
  end

  it("gets each event as a text of its own, those there are and those that come", function()
    world:configmap "a"
    world:configmap "b"
    local reply = ask(world.server, CONFIGMAPS .. "?watch=true")
    assert.equal(101, reply.code)
    assert.same({ "ADDED a", "ADDED b" }, types(reply))
    world:must("DELETE", CONFIGMAPS .. "/a")
    world:configmap "c"
    assert.same({ "DELETED a", "ADDED c" }, types(reply))
  end)

  it("names the one protocol that the client offers, whatever it is", function()
    assert.is_nil(ask(world.server, CONFIGMAPS .. "?watch=true").headers["Sec-WebSocket-Protocol"])
    for _, name in ipairs { "base64.binary.k8s.io", "any" } do
      local reply = ask(world.server, CONFIGMAPS .. "?watch=true", { ["sec-websocket-protocol"] = name })
      assert.equal(name, reply.headers["Sec-WebSocket-Protocol"])
    end
  end)

  it("is refused without an origin, with several protocols, and as any watch is", function()
    for code, more in pairs {
      [403] = { origin = false }, [400] = { ["sec-websocket-protocol"] = "a, b" },
    } do
      assert.equal(code, ask(world.server, CONFIGMAPS .. "?watch=true", more).code)
    end
    assert.equal(400, ask(world.server, CONFIGMAPS .. "?watch=true", { ["sec-websocket-version"] = "8" }).code)
    assert.equal(400, ask(world.server, CONFIGMAPS .. "?watch=true&labelSelector=((").code)
    world:configmap "a"
    assert.equal(0, world.server.hub.resources.configmaps and #world.server.hub.resources.configmaps or 0)
  end)

  it("is told of a version that is too old, and ends", function()
    world = testserver.new { accounts = false, history = 1 }
    local revision = world:configmap("a").metadata.resourceVersion
    for _, name in ipairs { "b", "c", "d" } do
      world:configmap(name)
    end
    local reply = ask(world.server, CONFIGMAPS .. "?watch=true&resourceVersion=" .. revision)
    local frames = taken(reply)
    assert.equal("Expired", host.json.decode(frames[1].payload).object.reason)
    assert.equal(0x88, frames[2].first)
    assert.is_true(reply.is_over)
  end)

  it("ends with a close: when its time is over, and when the client says so", function()
    local reply = ask(world.server, CONFIGMAPS .. "?watch=true&timeoutSeconds=5")
    world:pass(5)
    assert.equal(1000, client.close_code(reply:take()))
    assert.is_true(reply.is_over)
    reply = ask(world.server, CONFIGMAPS .. "?watch=true")
    reply:receive(client.frame(0x89, "here?") .. client.frame(0x81, "nobody reads this") .. client.frame(0x88, ""))
    local frames = taken(reply)
    assert.same({ first = 0x8a, payload = "here?" }, frames[1])
    assert.equal(0x88, frames[2].first)
    world:configmap "later"
    assert.same({}, taken(reply))
  end)

  it("is forgotten when the client goes without a word", function()
    local reply = ask(world.server, CONFIGMAPS .. "?watch=true")
    reply:take()
    reply:leave()
    world:configmap "a"
    assert.same({}, reply.sent)
  end)

  it("is cut when its client never reads", function()
    local reply = ask(world.server, CONFIGMAPS .. "?watch=true")
    reply.held = 4 * MIB
    world:configmap "a"
    assert.is_nil(reply.is_over)
    reply.held = 4 * MIB + 1
    world:configmap "b"
    assert.is_true(reply.is_cut)
    reply:take()
    world:configmap "c"
    assert.same({}, reply.sent)
  end)
end)


describe("a page in a browser", function()
  local PREFIX = "base64url.bearer.authorization.k8s.io."
  local PATH = CONFIGMAPS .. "?watch=true"
  local server

  before_each(function()
    server = testserver.new { tokens = { ["jane's?"] = { name = "jane" } } }.server
  end)

  local function with(protocols)
    return ask(server, PATH, { ["sec-websocket-protocol"] = protocols })
  end

  it("shows its token as a protocol, beside the one that is answered", function()
    local reply = with("any, " .. PREFIX .. "amFuZSdzPw")
    assert.same({ 101, "any" }, { reply.code, reply.headers["Sec-WebSocket-Protocol"] })
  end)

  it("is refused without such a token, with a wrong one, with two, and with nothing beside it", function()
    for _, protocols in ipairs {
      "any", "any, " .. PREFIX, "any, " .. PREFIX .. "amFuZQ", "any, " .. PREFIX .. "_w", "any, " .. PREFIX .. "a=",
      "any, " .. PREFIX .. "amFuZSdzPw, " .. PREFIX .. "amFuZSdzPw", PREFIX .. "amFuZSdzPw",
    } do
      assert.equal(401, with(protocols).code, protocols)
    end
  end)
end)


describe("a log by WebSocket", function()
  local world, lines, followers

  -- A log with these lines, which goes on when somebody calls `followers`.
  local function logs()
    return { find = function()
      return {
        lines = function()
          local at = 0
          return function()
            at = at + 1
            return lines[at]
          end
        end,
        follow = function(_, fn)
          followers[#followers + 1] = fn
          return function() followers = {} end
        end,
      }
    end }
  end

  local function line(text)
    return "2026-07-03T10:00:00.000000000Z F " .. text .. "\n"
  end

  before_each(function()
    world, lines, followers = testserver.new(), {}, {}
    log_subresource.serve(world.server, logs())
    world:must("POST", "/api/v1/namespaces/default/pods", { metadata = { name = "p" }, spec = {
      nodeName = "n", containers = { { name = "c", image = "i" } },
    } })
  end)

  local PATH = "/api/v1/namespaces/default/pods/p/log"

  it("comes in pieces after an empty message, and ends with a close", function()
    lines = { line(("x"):rep(2047)), line "two" }
    local reply = ask(world.server, PATH)
    local frames = taken(reply)
    assert.equal(1000, string.unpack(">I2", frames[4].payload))
    assert.same({ { first = 0x82, payload = "" }, { first = 0x82, payload = ("x"):rep(2047) .. "\n" },
      { first = 0x82, payload = "two\n" } }, { table.unpack(frames, 1, 3) })
    assert.is_true(reply.is_over)
  end)

  it("comes as base64 where the client wants texts, and goes on", function()
    lines = { line "one" }
    local reply = ask(world.server, PATH .. "?follow=true",
      { ["sec-websocket-protocol"] = "unknown, base64.binary.k8s.io, binary.k8s.io" })
    assert.equal("base64.binary.k8s.io", reply.headers["Sec-WebSocket-Protocol"])
    assert.same({ { first = 0x81, payload = "" }, { first = 0x81, payload = host.base64.encode "one\n" } },
      taken(reply))
    followers[1](line "two")
    assert.same({ { first = 0x81, payload = host.base64.encode "two\n" } }, taken(reply))
    reply:receive(client.frame(0x88, ""))
    assert.same({}, followers)
  end)

  it("is refused in a protocol that is not known, and as any log is", function()
    assert.equal(403, ask(world.server, PATH, { ["sec-websocket-protocol"] = "channel.k8s.io" }).code)
    assert.equal(404, ask(world.server, "/api/v1/namespaces/default/pods/none/log").code)
  end)

  it("is cut when its client never reads", function()
    local reply = ask(world.server, PATH .. "?follow=true")
    reply.held = 4 * MIB + 1
    followers[1](line "one")
    assert.is_true(reply.is_cut)
    assert.same({}, followers)
  end)
end)
