--- The streams of exec, attach and port-forward: what is negotiated, which streams there are, and how they end.
local audit = require "cluster.apiserver.audit"
local client = require "teststreams"
local host = require "cluster.host"
local hostlua = require "hostlua"
local streams = require "cluster.apiserver.streams"

local RST, GOAWAY <const> = 3, 7
local ALL = { stdin = true, stdout = true, stderr = true }
local SUCCESS = { metadata = {}, status = "Success" }
local FAILURE = { metadata = {}, status = "Failure", message = "it ended with 3", reason = "NonZeroExitCode" }


-- Opens the streams of a command. @return table { reply =, session =, spdy = a client, opened = count, closes = }
local function command(request, wanted)
  local self = { reply = client.reply(), opened = 0, closes = 0, spdy = client.spdy() }
  assert.is_true(streams.remote_command(request, self.reply, wanted or ALL, function(session)
    self.opened, self.session = self.opened + 1, session
    session.on_close = function()
      self.closes = self.closes + 1
    end
  end))
  return self
end


-- The client opens streams of these names. @return table name → id
local function open(self, names, headers)
  local ids = {}
  for _, name in ipairs(names) do
    local all = { streamtype = name }
    for key, value in pairs(headers or {}) do
      all[key] = value
    end
    local frame, id = self.spdy:open(all)
    ids[name] = id
    self.reply:receive(frame)
  end
  return ids
end


-- Listens on a stream, and returns the list of what it hears, as words.
local function listen(one)
  local words = {}
  one:listen {
    data = function(bytes) words[#words + 1] = bytes end,
    ended = function() words[#words + 1] = "<end>" end,
    reset = function() words[#words + 1] = "<reset>" end,
  }
  return words
end


setup(function()
  hostlua.freeze(1767225600)
end)


describe("a command's streams, by WebSocket", function()
  it("are channels", function()
    for _, protocol in ipairs { "v5.channel.k8s.io", "v4.channel.k8s.io", "channel.k8s.io", "" } do
      local self = command(client.websocket_request(protocol))
      assert.equal(101, self.reply.code)
      assert.equal(protocol ~= "" and protocol or nil, self.reply.headers["Sec-WebSocket-Protocol"])
      assert.equal(1, self.opened)
      assert.equal(protocol, self.session.protocol)
      local heard = listen(self.session.stdin)
      self.reply:receive(client.message(0, "in") .. client.message(9, "nowhere") .. client.frame(0x82, ""))
      assert.same({ "in" }, heard)
      self.session.stdout:write "out"
      self.session.stderr:write "err"
      assert.same({ [1] = "out", [2] = "err" }, client.by_channel(self.reply:take()))
    end
  end)

  it("are those that were asked for", function()
    local self = command(client.websocket_request "v4.channel.k8s.io", { stdout = true, tty = true })
    local session = self.session
    assert.is_truthy(session.stdout and session.error and session.resize)
    assert.is_nil(session.stdin or session.stderr)
    local sizes = listen(session.resize)
    self.reply:receive(client.message(0, "dropped") .. client.message(4, '{"Width":80,"Height":24}'))
    assert.same({ '{"Width":80,"Height":24}' }, sizes)
    assert.is_nil(command(client.websocket_request "v4.channel.k8s.io").session.resize)
  end)

  it("may be text", function()
    local self = command(client.websocket_request "v4.base64.channel.k8s.io")
    local heard = listen(self.session.stdin)
    self.reply:take()
    self.reply:receive(client.frame(0x81, "0" .. host.base64.encode "in") .. client.frame(0x81, "0%%%"))
    assert.same({ "in" }, heard)
    self.session.stdout:write "out"
    assert.same({ { first = 0x81, payload = "1" .. host.base64.encode "out" } }, client.frames(self.reply:take()))
  end)

  it("end by themselves in v5 only", function()
    for protocol, words in pairs { ["v5.channel.k8s.io"] = { "in", "<end>" }, ["v4.channel.k8s.io"] = { "in" } } do
      local self = command(client.websocket_request(protocol))
      local heard = listen(self.session.stdin)
      self.reply:receive(client.message(0, "in") .. client.message(255, "\0") .. client.message(255, "")
        .. client.message(255, "\9"))
      assert.same(words, heard)
      assert.is_nil(self.reply.is_over)
    end
  end)

  it("begin with an empty message, by which a client knows that they are there", function()
    for channel, wanted in pairs { { stdout = true }, { stderr = true }, { stdin = true } } do
      local self = command(client.websocket_request "v5.channel.k8s.io", wanted)
      assert.same({ [channel] = "" }, client.by_channel(self.reply:take()))
    end
  end)

  it("end with a Status, or an older protocol's text", function()
    for _, case in ipairs {
      { "v5.channel.k8s.io", SUCCESS, SUCCESS }, { "v4.channel.k8s.io", FAILURE, FAILURE },
      { "channel.k8s.io", FAILURE, "it ended with 3" }, { "channel.k8s.io", SUCCESS, nil },
    } do
      local self = command(client.websocket_request(case[1]))
      self.reply:take()
      self.session.stdout:write "last"
      self.session:finish(case[2])
      local sent = self.reply:take()
      local texts = client.by_channel(sent)
      assert.equal("last", texts[1])
      assert.same(case[3], type(case[3]) == "table" and host.json.decode(texts[3]) or texts[3])
      assert.equal(1000, client.close_code(sent))
      assert.is_true(self.reply.is_over)
      assert.equal(0, self.closes)
    end
  end)

  it("are lost with their client, once", function()
    local self = command(client.websocket_request "v5.channel.k8s.io")
    self.reply:leave()
    assert.equal(1, self.closes)
    self.session.stdout:write "nobody"
    self.session:pause(true)
    self.session:finish(SUCCESS)
    assert.equal(1, self.closes)

    self = command(client.websocket_request "v5.channel.k8s.io")
    self.reply:receive(client.frame(0x88, ""))
    assert.equal(1, self.closes)
  end)

  it("make the client wait", function()
    local self = command(client.websocket_request "v5.channel.k8s.io")
    self.session:pause(true)
    assert.is_true(self.reply.paused)
    self.reply.held = 5
    assert.equal(5, self.session.stdout:write "x")
  end)

  it("are refused when nothing is known of what is offered, or the handshake is none", function()
    local self = command(client.websocket_request "graphql-ws")
    assert.equal(403, self.reply.code)
    local request = client.websocket_request "v5.channel.k8s.io"
    request.headers["sec-websocket-key"] = "short"
    self = command(request)
    assert.equal(400, self.reply.code)
    assert.matches("^unable to upgrade: ", self.reply.body)
    assert.equal(0, self.opened)
  end)
end)


describe("a command's streams, by SPDY", function()
  it("are there once the client has opened all of them", function()
    local self = command(client.spdy_request "v4.channel.k8s.io, v3.channel.k8s.io")
    assert.same({ Connection = "Upgrade", Upgrade = "SPDY/3.1", ["X-Stream-Protocol-Version"] = "v4.channel.k8s.io" },
      self.reply.headers)
    open(self, { "error", "stdin", "stdout" })
    assert.equal(0, self.opened)
    local ids = open(self, { "stderr" })
    assert.equal(1, self.opened)
    assert.equal("v4.channel.k8s.io", self.session.protocol)
    local heard = listen(self.session.stdin)
    self.reply:receive(client.data(3, "in", 1))
    assert.same({ "in", "<end>" }, heard)
    self.reply:take()
    self.session.stderr:write "err"
    assert.same({ [ids.stderr] = { text = "err" } }, (client.spdy_said(self.reply:take())))
  end)

  it("are counted by what was asked for", function()
    for _, case in ipairs {
      { "v4.channel.k8s.io", { stdout = true }, { "error", "stdout" } },
      { "v4.channel.k8s.io", { stdin = true, stdout = true, tty = true }, { "error", "stdin", "stdout", "resize" } },
      { "v3.channel.k8s.io", { stdin = true, tty = true }, { "error", "stdin", "resize" } },
      { "v2.channel.k8s.io", { stdin = true, tty = true }, { "error", "stdin" } },
      { nil, { stdout = true, stderr = true }, { "error", "stdout", "stderr" } },
    } do
      local self = command(client.spdy_request(case[1]), case[2])
      for i, name in ipairs(case[3]) do
        assert.equal(0, self.opened)
        open(self, { name })
        assert.equal(i == #case[3] and 1 or 0, self.opened)
        assert.equal(i == #case[3] and name or nil, self.session and self.session[name].name)
      end
    end
  end)

  it("that nobody asked for are reset", function()
    local self = command(client.spdy_request "v4.channel.k8s.io", { stdout = true })
    open(self, { "error" })
    self.reply:take()
    open(self, { "error", "nonsense" })
    local resets = 0
    for _, frame in ipairs(client.spdy_frames(self.reply:take())) do
      resets = resets + (frame.kind == RST and 1 or 0)
    end
    assert.equal(2, resets)
    open(self, { "stdout" })
    assert.equal(1, self.opened)
  end)

  it("are waited for half a minute", function()
    local self = command(client.spdy_request "v4.channel.k8s.io")
    open(self, { "error", "stdin" })
    hostlua.advance(29)
    assert.is_nil(self.reply.is_over)
    hostlua.advance(2)
    assert.is_true(self.reply.is_over)
    assert.equal(0, self.opened)

    self = command(client.spdy_request "v4.channel.k8s.io", { stdout = true })
    open(self, { "error", "stdout" })
    hostlua.advance(60)
    assert.is_nil(self.reply.is_over)

    self = command(client.spdy_request "v4.channel.k8s.io")
    self.reply:leave()
    hostlua.advance(60)
    assert.equal(0, self.closes)
  end)

  it("end with a Status, or an older protocol's text, and then the connection", function()
    for _, case in ipairs {
      { "v4.channel.k8s.io", SUCCESS, SUCCESS }, { "v4.channel.k8s.io", FAILURE, FAILURE },
      { "v2.channel.k8s.io", FAILURE, "it ended with 3" }, { "v3.channel.k8s.io", SUCCESS, "" },
    } do
      local self = command(client.spdy_request(case[1]), { stdout = true })
      local ids = open(self, { "error", "stdout" })
      self.reply:take()
      self.session.stdout:write "last"
      self.session:finish(case[2])
      local said, control = client.spdy_said(self.reply:take())
      assert.same({ text = "last", is_ended = true }, said[ids.stdout])
      assert.is_true(said[ids.error].is_ended)
      local text = said[ids.error].text
      assert.same(case[3], type(case[3]) == "table" and host.json.decode(text) or text)
      assert.equal(GOAWAY, control[#control].kind)
      assert.is_true(self.reply.is_over)
      assert.equal(0, self.closes)
    end
  end)

  it("are refused without the headers, without a common protocol, and where nothing can be upgraded", function()
    local request = client.spdy_request "v4.channel.k8s.io"
    request.headers.upgrade = nil
    local self = command(request)
    assert.equal(400, self.reply.code)
    assert.matches("^unable to upgrade: missing upgrade headers in request", self.reply.body)

    self = command(client.spdy_request "v9.channel.k8s.io")
    assert.equal(403, self.reply.code)
    assert.matches("client supports [v9.channel.k8s.io]", self.reply.body, 1, true)
    assert.matches("v4.channel.k8s.io", self.reply.headers["X-Accepted-Stream-Protocol-Versions"], 1, true)

    local reply = client.reply()
    reply.is_rigid = true
    streams.remote_command(client.spdy_request "v4.channel.k8s.io", reply, ALL, error)
    assert.equal(400, reply.code)
  end)
end)


-- Opens a connection for ports. @return table { reply =, pairs = list, spdy = a client }
local function forward(request)
  local self = { reply = client.reply(), pairs = {}, spdy = client.spdy() }
  assert.is_true(streams.port_forward(request, self.reply, function(pair)
    self.pairs[#self.pairs + 1] = pair
  end))
  return self
end


describe("a port's streams, by SPDY", function()
  it("come in pairs by their request, in either order", function()
    local self = forward(client.spdy_request "portforward.k8s.io")
    open(self, { "error" }, { port = "80", requestid = "0" })
    open(self, { "data" }, { port = "443", requestid = "1" })
    assert.same({}, self.pairs)
    open(self, { "error" }, { port = "443", requestid = "1" })
    local ids = open(self, { "data" }, { port = "80", requestid = "0" })
    assert.same({ 443, 80 }, { self.pairs[1].port, self.pairs[2].port })
    local heard = listen(self.pairs[2].data)
    self.reply:receive(client.data(ids.data, "GET /"))
    assert.same({ "GET /" }, heard)
    self.pairs[2].pause(true)
    assert.is_true(self.reply.paused)
    self.reply:leave()
    assert.same({ "GET /", "<reset>" }, heard)
  end)

  it("of old clients come in pairs by their order", function()
    local self = forward(client.spdy_request "portforward.k8s.io")
    open(self, { "error", "data" }, { port = "80" })
    open(self, { "error", "data" }, { port = "81" })
    assert.same({ 80, 81 }, { self.pairs[1].port, self.pairs[2].port })
  end)

  it("are reset when they make no sense, while others go on", function()
    for _, port in ipairs { "0", "65536", "x", "", "1.5", "0x50", false } do
      local self = forward(client.spdy_request "portforward.k8s.io")
      open(self, { "data" }, { port = port or nil, requestid = "0" })
      local frames = client.spdy_frames(self.reply:take())
      assert.equal(RST, frames[#frames].kind)
    end
    local self = forward(client.spdy_request "portforward.k8s.io")
    open(self, { "data", "data", "stdin" }, { port = "80", requestid = "0" })
    open(self, { "error" }, { port = "81", requestid = "0" })
    assert.same({}, self.pairs)
    open(self, { "error" }, { port = "80", requestid = "0" })
    assert.equal(80, self.pairs[1].port)
  end)

  it("are given up when the second does not come", function()
    local self = forward(client.spdy_request "portforward.k8s.io")
    open(self, { "data" }, { port = "80", requestid = "0" })
    self.reply:take()
    hostlua.advance(31)
    assert.equal(RST, client.spdy_frames(self.reply:take())[1].kind)
    open(self, { "error" }, { port = "80", requestid = "0" })
    assert.same({}, self.pairs)
    self.reply:leave()
    hostlua.advance(60)
  end)

  it("that wait for their second are not without number", function()
    local self = forward(client.spdy_request "portforward.k8s.io")
    for i = 1, 200 do
      open(self, { "error" }, { port = "80", requestid = tostring(i) })
    end
    local resets = 0
    for _, frame in ipairs(client.spdy_frames(self.reply:take())) do
      resets = resets + (frame.kind == RST and 1 or 0)
    end
    assert.equal(72, resets)
    self.reply:receive(client.control(RST, 0, string.pack(">I4I4", 1, 5)))
    open(self, { "error", "data" }, { port = "80", requestid = "new" })
    assert.equal(1, #self.pairs)
  end)

  it("are refused without a common protocol", function()
    assert.equal(403, forward(client.spdy_request "v4.channel.k8s.io").reply.code)
    assert.equal(400, forward { headers = {}, query = {} }.reply.code)
  end)
end)


describe("a port's streams, by WebSocket", function()
  it("are SPDY in messages", function()
    local self = forward(client.websocket_request "SPDY/3.1+portforward.k8s.io")
    assert.equal("SPDY/3.1+portforward.k8s.io", self.reply.headers["Sec-WebSocket-Protocol"])
    local error_frame = self.spdy:open { streamtype = "error", port = "80", requestid = "0" }
    local data_frame, id = self.spdy:open { streamtype = "data", port = "80", requestid = "0" }
    local bytes = error_frame .. data_frame .. client.data(id, "hello", 1)
    for at = 1, #bytes, 7 do
      self.reply:receive(client.frame(0x82, bytes:sub(at, at + 6)))
    end
    assert.same({ "hello", "<end>" }, listen(self.pairs[1].data))
    self.reply:take()
    self.pairs[1].data:write "back"
    local messages = {}
    for i, frame in ipairs(client.frames(self.reply:take())) do
      messages[i] = frame.payload
    end
    assert.same({ [id] = { text = "back" } }, (client.spdy_said(table.concat(messages))))
    self.pairs[1].pause(true)
    assert.is_true(self.reply.paused)
  end)

  it("end with a tunnel that breaks the rules of either", function()
    for _, bytes in ipairs { client.frame(0x82, client.control(99, 0, "")), "\x82\x01x", client.frame(0x88, "") } do
      local self = forward(client.websocket_request "SPDY/3.1+portforward.k8s.io")
      self.reply:receive(client.frame(0x82, (self.spdy:open { streamtype = "error", port = "80", requestid = "0" })))
      self.reply:receive(client.frame(0x82, (self.spdy:open { streamtype = "data", port = "80", requestid = "0" })))
      local heard = listen(self.pairs[1].data)
      self.reply:receive(bytes)
      assert.same({ "<reset>" }, heard)
      assert.is_true(self.reply.is_over)
    end
  end)

  it("are channels of the ports in the query, each with its number first", function()
    local self = forward(client.websocket_request("v4.channel.k8s.io", { ports = { "80,443" } }))
    assert.same({ 80, 443 }, { self.pairs[1].port, self.pairs[2].port })
    assert.same({ [0] = "\80\0", "\80\0", "\xbb\1", "\xbb\1" }, client.by_channel(self.reply:take()))
    local heard = listen(self.pairs[2].data)
    self.reply:receive(client.message(2, "hello"))
    self.pairs[2].data:write "back"
    assert.same({ [2] = "back" }, client.by_channel(self.reply:take()))
    self.reply:leave()
    assert.same({ "hello", "<reset>" }, heard)
  end)

  it("are refused without ports, with wrong ones, and without a common protocol", function()
    for _, case in ipairs { { "v4.channel.k8s.io", {}, 400 }, { "v4.channel.k8s.io", { "80,x" }, 400 },
      { "v4.channel.k8s.io", { "x,80" }, 400 }, { "v4.channel.k8s.io", { ("1,"):rep(65) }, 400 },
      { "v9", { "80" }, 403 },
    } do
      local self = forward(client.websocket_request(case[1], { ports = case[2] }))
      assert.equal(case[3], self.reply.code)
      assert.same({}, self.pairs)
    end
  end)
end)


describe("the streams of a request that is audited", function()
  local reply, records

  before_each(function()
    reply, records = client.reply(), {}
  end)

  -- The same command as above, on a reply that is noted on its way.
  local function audited(request)
    local opened
    local noted = audit.reply(request, reply, { function(record) records[#records + 1] = record end })
    streams.remote_command(request, noted, ALL, function(session) opened = session end)
    return opened
  end

  it("are the same, and the record comes with their end", function()
    local session = audited(client.websocket_request "v5.channel.k8s.io")
    assert.equal(101, reply.code)
    reply:take()
    local heard = listen(session.stdin)
    reply:receive(client.message(0, "hello"))
    assert.same({ "hello" }, heard)
    session:pause(true)
    assert.is_true(reply.paused)
    assert.same({}, records)
    session:finish(SUCCESS)
    assert.is_true(reply.is_over)
    assert.same({ 1, 101 }, { #records, records[1].code })
  end)

  it("are lost with their client, which is recorded once", function()
    local session = audited(client.websocket_request "v5.channel.k8s.io")
    local closes = 0
    session.on_close = function() closes = closes + 1 end
    reply:leave()
    assert.same({ 1, 1, 101 }, { closes, #records, records[1].code })
  end)

  it("have the code of their refusal where nothing can be upgraded", function()
    reply.is_rigid = true
    assert.is_nil(audited(client.websocket_request "v5.channel.k8s.io"))
    assert.same({ 1, reply.code }, { #records, records[1].code })
    assert.not_equal(101, reply.code)
  end)
end)
