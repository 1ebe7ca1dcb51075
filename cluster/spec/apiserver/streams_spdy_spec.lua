--- SPDY/3.1: streams that a client opens, their halves, and clients that break the rules.
local client = require "teststreams"
local header_block = require "cluster.apiserver.streams.header_block"
local host = require "cluster.host"
local spdy = require "cluster.apiserver.streams.spdy"

local SYN_STREAM, SYN_REPLY, RST, SETTINGS, PING, GOAWAY, HEADERS, WINDOW_UPDATE <const> = 1, 2, 3, 4, 6, 7, 8, 9
local FIN <const> = 1


-- An open connection: { link =, session =, client =, streams = list, heard = { [stream] = list of words }, closes = }.
local function opened(listens)
  local self = { client = client.spdy(), streams = {}, heard = {}, closes = 0, sent = {} }
  self.link = { held = 0 }
  function self.link.write(_, bytes)
    assert(not self.is_over, "written after the end")
    self.sent[#self.sent + 1] = bytes
    return self.link.held
  end
  function self.link.waiting() return self.link.held end
  function self.link.pause(_, paused) self.paused = paused end
  function self.link.finish() self.is_over = true end
  self.session = spdy.new(self.link, {
    stream = function(one)
      local words = {}
      self.streams[#self.streams + 1], self.heard[#self.streams + 1] = one, words
      if listens ~= false then
        one:listen {
          data = function(bytes) words[#words + 1] = bytes end,
          ended = function() words[#words + 1] = "<end>" end,
          reset = function() words[#words + 1] = "<reset>" end,
        }
      end
    end,
    closed = function()
      self.closes = self.closes + 1
    end,
  })
  function self.receive(bytes, size)
    for at = 1, #bytes, size or #bytes do
      self.link.on_data(bytes:sub(at, at + (size or #bytes) - 1))
    end
  end
  function self.said()
    local bytes = table.concat(self.sent)
    self.sent = {}
    return client.spdy_said(bytes)
  end
  return self
end


-- Opens a stream. @return integer id
local function open(self, headers, flags)
  local frame, id = self.client:open(headers or { streamtype = "data" }, flags)
  self.receive(frame)
  return id
end


-- The code of a GOAWAY at the end; nil when there is none.
local function goaway(control)
  local last = control[#control]
  return last and last.kind == GOAWAY and select(2, string.unpack(">I4I4", last.payload)) or nil
end


describe("a block of headers", function()
  it("is read as it was written, one after the other", function()
    local here, there = header_block.new(), header_block.new()
    for _, headers in ipairs { { streamtype = "error" }, {}, { streamtype = "error", port = "80" }, { a = "" } } do
      assert.same(headers, there:unpack(here:pack(headers)))
    end
  end)

  it("begins with the dictionary of the draft", function()
    local block = header_block.new():pack { a = "b" }
    assert.equal("\x78\xbb\xe3\xc6\xa7\xc2", block:sub(1, 6)) -- zlib, and Adler-32 of 1423 bytes
  end)

  it("is refused when it is no zlib, cut off, too long or has too many pairs", function()
    local function refused(bytes)
      local headers, why = header_block.new():unpack(bytes)
      assert.is_nil(headers)
      assert.is_string(why)
    end
    local function packed(text)
      return header_block.new().deflater:add(text)
    end
    refused "no zlib"
    refused ""
    refused(packed "")
    refused(packed "\0\0")
    refused(packed(string.pack(">I4s4", 1, "name")))
    refused(packed(string.pack(">I4I4", 1, 0xffffffff)))
    refused(packed(string.pack(">I4", 0xffffffff)))
    refused(packed(string.pack(">I4", 65) .. string.pack(">s4s4", "a", "b"):rep(65)))
    refused(packed(("\0"):rep(64 * 1024 + 1)))
  end)

  it("that would be huge is given up early", function()
    local block = header_block.new()
    local bomb = block.deflater:add(("\0"):rep(32 * 1024 * 1024))
    assert.is_true(#bomb < 64 * 1024)
    local victim = header_block.new()
    assert.same({ nil, "too much" }, { victim:unpack(bomb) })
    assert.is_nil((victim:unpack(header_block.new():pack {})), "its state is lost")
  end)
end)


describe("a SPDY stream", function()
  it("is opened and answered", function()
    local self = opened()
    local id = open(self, { streamtype = "stdin", port = "80" })
    assert.equal(1, id)
    assert.equal("stdin", self.streams[1].name)
    assert.same({ streamtype = "stdin", port = "80" }, self.streams[1].headers)
    local _, control = self.said()
    assert.equal(SYN_REPLY, control[1].kind)
    assert.equal(1, string.unpack(">I4", control[1].payload))
    assert.same({}, header_block.new():unpack(control[1].payload:sub(5)))
  end)

  it("carries bytes in both directions, in whatever pieces they arrive", function()
    local big = ("0123456789abcdef"):rep(64 * 1024) -- 1 MiB
    for _, size in ipairs { 1000, 1 << 30 } do
      local self = opened()
      local first, second = open(self), open(self)
      self.receive(client.data(first, "a") .. client.data(second, "b") .. client.data(first, big), size)
      assert.same({ "a", big }, self.heard[1])
      assert.same({ "b" }, self.heard[2])
      self.said()
      self.streams[1]:write(big)
      self.streams[2]:write "c"
      assert.same({ [first] = { text = big }, [second] = { text = "c" } }, (self.said()))
    end
  end)

  it("ends in each direction by itself", function()
    local self = opened()
    local id = open(self)
    self.receive(client.data(id, "last", FIN))
    assert.same({ "last", "<end>" }, self.heard[1])
    self.said()
    self.streams[1]:write "still"
    assert.same({ [id] = { text = "still" } }, (self.said()))
    self.streams[1]:close()
    self.streams[1]:close()
    assert.same({ [id] = { text = "", is_ended = true } }, (self.said()))
    assert.equal(0, self.session.count)

    id = open(self)
    self.said()
    self.streams[2]:close()
    self.streams[2]:write "no more"
    assert.same({ [id] = { text = "", is_ended = true } }, (self.said()))
    self.receive(client.data(id, "still"))
    assert.same({ "still" }, self.heard[2])
    self.receive(client.data(id, "", FIN))
    assert.same({ "still", "<end>" }, self.heard[2])
    assert.equal(0, self.session.count)
    self.receive(client.data(id, "too late"))
    assert.same({ "still", "<end>" }, self.heard[2])
  end)

  it("may be opened with its end", function()
    local self = opened()
    open(self, {}, FIN)
    assert.same({ "<end>" }, self.heard[1])
    self.streams[1]:close()
    assert.equal(0, self.session.count)
  end)

  it("is reset by either side", function()
    local self = opened()
    local first, second = open(self), open(self)
    self.receive(client.control(RST, 0, string.pack(">I4I4", first, 5)))
    assert.same({ "<reset>" }, self.heard[1])
    self.said()
    self.streams[1]:write "nobody reads"
    self.streams[1]:close()
    self.streams[1]:reset()
    self.streams[2]:reset()
    self.streams[2]:reset()
    local said, control = self.said()
    assert.same({}, said)
    assert.equal(1, #control)
    assert.same({ RST, second }, { control[1].kind, (string.unpack(">I4", control[1].payload)) })
    self.receive(client.data(second, "nobody listens") .. client.control(RST, 0, string.pack(">I4I4", second, 5)))
    assert.same({}, self.heard[2])
    assert.equal(0, self.session.count)
  end)

  it("keeps what comes before anybody listens, to a limit", function()
    local self = opened(false)
    local id = open(self)
    self.receive(client.data(id, "one") .. client.data(id, "two", FIN))
    local heard = {}
    self.streams[1]:listen { data = function(bytes) heard[#heard + 1] = bytes end,
      ended = function() heard[#heard + 1] = "<end>" end }
    assert.same({ "one", "two", "<end>" }, heard)

    id = open(self)
    local other = open(self)
    for _ = 1, 3 do
      self.receive(client.data(id, ("x"):rep(250000)) .. client.data(other, ("x"):rep(50000)))
    end
    assert.is_nil(self.is_over)
    self.receive(client.data(other, ("x"):rep(250000)))
    assert.is_true(self.is_over)
    assert.equal(1, self.closes)
  end)

  it("keeps no more of what comes in small pieces", function()
    local self = opened(false)
    local pieces = client.data(open(self), "x"):rep(10000)
    self.receive(pieces)
    assert.is_true(self.is_over)
  end)

  it("frees what it kept when it is given up", function()
    local self = opened(false)
    for i = 1, 20 do
      local id = open(self)
      self.receive(client.data(id, ("x"):rep(500000)))
      if i % 2 == 0 then
        self.receive(client.control(RST, 0, string.pack(">I4I4", id, 5)))
      else
        self.streams[i]:reset()
      end
    end
    assert.is_nil(self.is_over)
  end)
end)


describe("a SPDY connection", function()
  it("has streams to a limit; more are refused, and a closed one makes room", function()
    local self = opened()
    for _ = 1, 256 do
      open(self)
    end
    self.said()
    local id = open(self)
    local _, control = self.said()
    assert.equal(256, #self.streams)
    assert.equal(RST, control[1].kind)
    assert.equal(string.pack(">I4I4", id, 3), control[1].payload)
    self.streams[7]:reset()
    open(self, { streamtype = "stdin" })
    assert.equal("stdin", self.streams[257].name)
  end)

  it("answers pings, and passes over what has no meaning here", function()
    local self = opened()
    local id = open(self)
    self.said()
    self.receive(client.control(PING, 0, string.pack(">I4", 7)) .. client.control(PING, 0, string.pack(">I4", 8))
      .. client.control(SETTINGS, 0, string.pack(">I4", 0))
      .. client.control(WINDOW_UPDATE, 0, string.pack(">I4I4", id, 65536))
      .. client.control(HEADERS, 0, string.pack(">I4", id) .. self.client.block:pack { more = "x" })
      .. client.control(SYN_REPLY, 0, string.pack(">I4", id)))
    local _, control = self.said()
    assert.same({ { kind = PING, flags = 0, payload = "\0\0\0\7" } }, control)
    assert.is_nil(self.is_over)
    open(self, { streamtype = "error" }) -- the state of zlib is still shared
    assert.equal("error", self.streams[2].name)
  end)

  it("ends with GOAWAY, and each stream is told", function()
    local self = opened()
    open(self)
    open(self)
    self.receive(client.control(GOAWAY, 0, string.pack(">I4I4", 0, 0)))
    local _, control = self.said()
    assert.equal(0, goaway(control))
    assert.same({ { "<reset>" }, { "<reset>" } }, self.heard)
    assert.equal(1, self.closes)
    self.streams[1]:write "nobody"
    self.streams[1]:close()
    assert.equal(0, self.streams[1]:waiting())
  end)

  it("ends when its client is gone, without a word to it", function()
    local self = opened()
    open(self)
    self.said()
    self.link.on_close()
    self.link.on_close()
    assert.same({ "<reset>" }, self.heard[1])
    assert.equal(1, self.closes)
    self.streams[1]:write "nobody"
    self.session:pause(true)
    self.session:finish()
    assert.same({}, self.sent)
  end)

  it("ends from this side without a word of closed()", function()
    local self = opened()
    open(self)
    self.said()
    self.streams[1]:write "last"
    self.session:finish()
    local said, control = self.said()
    assert.equal("last", said[1].text)
    assert.equal(0, goaway(control))
    assert.is_true(self.is_over)
    assert.equal(0, self.closes)
    self.receive(client.data(1, "too late"))
    assert.same({}, self.heard[1])
  end)

  it("ends with a word for each breach of the rules", function()
    local block = header_block.new()
    local function syn(id, headers)
      return client.control(SYN_STREAM, 0, string.pack(">I4I4I2", id, 0, 0) .. headers)
    end
    local cases = {
      ["an even stream"] = syn(2, block:pack {}),
      ["no zlib"] = syn(1, "no zlib"),
      ["a short SYN_STREAM"] = client.control(SYN_STREAM, 0, "123456789"),
      ["short HEADERS"] = client.control(HEADERS, 0, "123"),
      ["another version"] = string.pack(">I2I2I4", 0x8002, PING, 4) .. "\0\0\0\1",
      ["an unknown frame"] = client.control(99, 0, ""),
      ["a large frame"] = string.pack(">I2I2I4", 0x8003, SYN_STREAM, 64 * 1024 + 1),
      ["large data"] = string.pack(">I4I4", 1, 1024 * 1024 + 1),
    }
    for name, bytes in pairs(cases) do
      for _, size in ipairs { 1, #bytes } do
        local self = opened()
        self.receive(bytes, size)
        local _, control = self.said()
        assert.equal(1, goaway(control), name)
        assert.equal(1, self.closes, name)
        assert.same({}, self.streams, name)
      end
    end
    local self = opened()
    open(self)
    self.client.next_id = 1
    open(self) -- a number that was there before
    assert.is_true(self.is_over)
  end)

  it("makes the client wait", function()
    local self = opened()
    self.session:pause(true)
    assert.is_true(self.paused)
    self.session:pause(false)
    assert.is_false(self.paused)
    open(self)
    self.link.held = 77
    assert.equal(77, self.streams[1]:write "x")
  end)
end)


describe("a SPDY connection that is cut off", function()
  it("after any byte leaves nothing open", function()
    local made = client.spdy()
    local syn, id = made:open { streamtype = "stdin" }
    local bytes = syn .. client.data(id, "hello", FIN) .. client.control(PING, 0, "\0\0\0\1")
    for size = 1, #bytes do
      local self = opened()
      self.receive(bytes:sub(1, size))
      self.link.on_close()
      assert.same(size >= #syn + 13 and { "hello", "<end>", "<reset>" } or size >= #syn and { "<reset>" } or nil,
        self.heard[1])
      assert.equal(1, self.closes)
      assert.equal(0, self.session.count)
    end
  end)

  it("or by a client that says what comes to mind ends in order", function()
    local seed = 20260403
    local function random(n)
      seed = seed * 6364136223846793005 + 1442695040888963407
      return (seed >> 33) % n
    end
    local function noise()
      local bytes = {}
      for i = 1, random(40) do
        bytes[i] = string.char(random(256))
      end
      return table.concat(bytes)
    end
    for _ = 1, 2000 do
      local self = opened(random(2) == 0)
      for _ = 1, random(8) do
        local kind = random(4)
        local frame = kind == 0 and client.control(random(11), random(4), noise())
          or kind == 1 and client.data(random(8), noise(), random(2)) or kind == 2 and noise()
          or self.client:open { streamtype = "data" }
        self.receive(frame .. "", 1 + random(30))
      end
      self.said()
      self.link.on_close()
      assert.equal(1, self.closes)
    end
  end)
end)


describe("zlib", function()
  it("shares its state over many pieces", function()
    local there, back = host.stream.deflater "words", host.stream.inflater("words", 100000)
    for i = 0, 200 do
      local text = ("words of %d "):format(i):rep(i)
      assert.equal(text, back:add(there:add(text)))
    end
    assert.equal("", back:add "")
  end)

  it("ends with its limit, another dictionary, or what is no zlib", function()
    local there = host.stream.deflater "words"
    assert.equal(("a"):rep(1000), host.stream.inflater("words", 1000):add(there:add(("a"):rep(1000))))
    local first = host.stream.deflater("words"):add(("a"):rep(1001))
    assert.same({ nil, "too much" }, { host.stream.inflater("words", 1000):add(first) })
    assert.same({ nil, "not compressed by zlib" }, { host.stream.inflater("other", 1000):add(first) })
    local broken = host.stream.inflater("words", 1000)
    assert.same({ nil, "not compressed by zlib" }, { broken:add "abc" })
    assert.same({ nil, "it has failed before" }, { broken:add "" })
  end)
end)
