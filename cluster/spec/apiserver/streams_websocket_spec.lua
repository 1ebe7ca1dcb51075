--- WebSockets: the handshake, frames, messages, and clients that break the rules.
local client = require "teststreams"
local websocket = require "cluster.apiserver.streams.websocket"

local MESSAGE_MAX = websocket.MESSAGE_MAX


-- An open one: { socket =, reply =, heard = list of messages, closes = how often }.
local function opened(protocol)
  local self = { reply = client.reply(), heard = {}, closes = 0 }
  self.socket = assert(websocket.open(client.websocket_request(protocol), self.reply, protocol, {
    message = function(bytes)
      self.heard[#self.heard + 1] = bytes
    end,
    closed = function()
      self.closes = self.closes + 1
    end,
  }))
  return self
end


describe("a WebSocket's handshake", function()
  it("is answered with the key's digest and the protocol", function()
    local self = opened "v5.channel.k8s.io"
    assert.equal(101, self.reply.code)
    assert.same({ Connection = "Upgrade", Upgrade = "websocket", ["Sec-WebSocket-Protocol"] = "v5.channel.k8s.io",
      ["Sec-WebSocket-Accept"] = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" }, self.reply.headers)
  end)

  it("is asked for by both headers, in any case", function()
    local request = client.websocket_request()
    assert.is_true(websocket.is_asked(request))
    request.headers.connection = "keep-alive"
    assert.is_false(websocket.is_asked(request))
    request.headers.connection, request.headers.upgrade = "upgrade", "SPDY/3.1"
    assert.is_false(websocket.is_asked(request))
    assert.is_false(websocket.is_asked { headers = {} })
  end)

  it("is refused with another version, or a key that is none", function()
    for name, values in pairs { ["sec-websocket-version"] = { false, "8" }, ["sec-websocket-key"] = { false, "", "abc",
      "dGhlIHNhbXBsZQ==" } } do
      for _, value in ipairs(values) do
        local request, reply = client.websocket_request(), client.reply()
        request.headers[name] = value or nil
        local socket, why = websocket.open(request, reply, nil, {})
        assert.is_nil(socket)
        assert.matches("^unable to upgrade: ", why)
        assert.is_nil(reply.code)
      end
    end
  end)

  it("fails where the connection cannot be upgraded", function()
    local reply = client.reply()
    reply.is_rigid = true
    local socket, why = websocket.open(client.websocket_request(), reply, nil, {})
    assert.is_nil(socket)
    assert.equal("this connection cannot be upgraded", why)
  end)
end)


describe("a WebSocket's messages", function()
  it("come whole, in whatever pieces they arrive", function()
    local sent = { "", "a", ("b"):rep(125), ("c"):rep(126), ("d"):rep(0xffff), ("e"):rep(0x10000) }
    local frames = {}
    for i, text in ipairs(sent) do
      frames[i] = client.frame(0x82, text)
    end
    for _, size in ipairs { 1, 7, 4096, 1 << 30 } do
      local self = opened()
      self.reply:receive(table.concat(frames), size)
      assert.same(sent, self.heard)
    end
  end)

  it("come joined from fragments, with a ping in between", function()
    local self = opened()
    self.reply:receive(client.frame(0x02, "one,") .. client.frame(0x00, "") .. client.frame(0x89, "here?")
      .. client.frame(0x00, "two,") .. client.frame(0x80, "three") .. client.frame(0x81, "text"))
    assert.same({ "one,two,three", "text" }, self.heard)
    assert.same({ { first = 0x8a, payload = "here?" } }, client.frames(self.reply:take()))
  end)

  it("have a largest size, also as fragments", function()
    local self = opened()
    self.reply:receive(client.frame(0x82, ("x"):rep(MESSAGE_MAX)))
    assert.equal(MESSAGE_MAX, #self.heard[1])
    self.reply:receive(string.pack(">BBI8", 0x82, 0xff, MESSAGE_MAX + 1))
    assert.equal(1009, client.close_code(self.reply:take()))
    assert.equal(1, self.closes)

    self = opened()
    self.reply:receive(client.frame(0x02, ("x"):rep(MESSAGE_MAX)) .. client.frame(0x80, "x"))
    assert.equal(1009, client.close_code(self.reply:take()))
    assert.same({}, self.heard)
  end)

  it("take no memory for fragments that are empty", function()
    local self = opened()
    self.reply:receive(client.frame(0x02, "a"))
    local empty = client.frame(0x00, ""):rep(20000)
    collectgarbage()
    local before = collectgarbage "count"
    for _ = 1, 5 do
      self.reply:receive(empty)
    end
    collectgarbage()
    assert.is_true(collectgarbage "count" - before < 512, "100000 fragments are kept")
    self.reply:receive(client.frame(0x80, "b"))
    assert.same({ "ab" }, self.heard)
  end)

  it("go out whole, with the shortest length", function()
    local self = opened()
    for _, size in ipairs { 0, 125, 126, 0xffff, 0x10000 } do
      self.socket:send(("z"):rep(size))
      local bytes = self.reply:take()
      assert.equal(size + (size < 126 and 2 or size <= 0xffff and 4 or 10), #bytes)
      assert.same({ { first = 0x82, payload = ("z"):rep(size) } }, client.frames(bytes))
    end
    self.socket:send("text", true)
    assert.equal(0x81, client.frames(self.reply:take())[1].first)
  end)

  it("tell how much waits, and the client can be made to wait", function()
    local self = opened()
    self.reply.held = 42
    assert.equal(42, self.socket:send "x")
    assert.equal(42, self.socket:waiting())
    self.socket:pause(true)
    assert.is_true(self.reply.paused)
    self.socket:pause(false)
    assert.is_false(self.reply.paused)
  end)
end)


describe("a WebSocket's end", function()
  it("is answered when the client asks for it", function()
    local self = opened()
    self.reply:receive(client.frame(0x88, string.pack(">I2", 1000)) .. client.frame(0x82, "after"))
    assert.equal(1000, client.close_code(self.reply:take()))
    assert.is_true(self.reply.is_over)
    assert.equal(1, self.closes)
    assert.same({}, self.heard)
  end)

  it("comes from this side without a word of closed()", function()
    local self = opened()
    self.socket:send "last"
    self.socket:finish()
    self.socket:finish()
    local frames = client.frames(self.reply:take())
    assert.same({ 0x82, 0x88 }, { frames[1].first, frames[2].first })
    assert.is_true(self.reply.is_over)
    assert.equal(0, self.closes)
    assert.equal(0, self.socket:send "more")
    assert.equal(0, self.socket:waiting())
    self.socket:pause(true)
  end)

  it("is told once when the client is gone", function()
    local self = opened()
    self.reply:leave()
    assert.equal(1, self.closes)
    self.socket:fail "too late"
    assert.equal(0, self.socket:send "more")
    assert.equal(1, self.closes)
  end)

  it("comes with 1002 for each breach of the rules", function()
    local plain = string.pack("BB", 0x82, 1) .. "x"
    local cases = {
      ["no mask"] = plain,
      ["an extension's bit"] = client.frame(0xc2, "x"),
      ["a continuation of nothing"] = client.frame(0x80, "x"),
      ["a message within a message"] = client.frame(0x02, "x") .. client.frame(0x82, "x"),
      ["an unknown kind"] = client.frame(0x83, "x"),
      ["an unknown control frame"] = client.frame(0x8b, "x"),
      ["a ping in fragments"] = client.frame(0x09, "x"),
      ["a long ping"] = client.frame(0x89, ("x"):rep(126)),
    }
    for name, bytes in pairs(cases) do
      for _, size in ipairs { 1, #bytes } do
        local self = opened()
        self.reply:receive(bytes, size)
        assert.equal(1002, client.close_code(self.reply:take()), name)
        assert.is_true(self.reply.is_over, name)
        assert.equal(1, self.closes, name)
        assert.same({}, self.heard, name)
      end
    end
  end)

  it("comes for sizes beyond all bounds", function()
    for _, size in ipairs { 1 << 31, 1 << 62, math.maxinteger, math.mininteger, -1 } do
      local self = opened()
      self.reply:receive(string.pack(">BBi8", 0x82, 0xff, size))
      assert.equal(1009, client.close_code(self.reply:take()))
    end
  end)
end)


describe("a WebSocket that is cut off", function()
  it("gives no message that is not whole", function()
    local bytes = client.frame(0x02, ("a"):rep(70)) .. client.frame(0x80, ("b"):rep(200))
    for size = 1, #bytes - 1 do
      local self = opened()
      self.reply:receive(bytes:sub(1, size))
      self.reply:leave()
      assert.same({}, self.heard)
      assert.equal(1, self.closes)
    end
  end)

  it("or sends what comes to mind ends in order", function()
    local seed = 20260402
    local function random(n)
      seed = seed * 6364136223846793005 + 1442695040888963407
      return (seed >> 33) % n
    end
    for _ = 1, 3000 do
      local self, bytes = opened(), {}
      for i = 1, random(60) do
        bytes[i] = string.char(random(256))
      end
      local garbage = table.concat(bytes)
      if random(2) == 0 then
        garbage = string.char(0x80 | random(16), 0x80 | random(20)) .. garbage
      end
      self.reply:receive(garbage, 1 + random(20))
      client.frames(self.reply:take()) -- whole ones
      self.reply:leave()
      assert.equal(1, self.closes)
    end
  end)
end)
