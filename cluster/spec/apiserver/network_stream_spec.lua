-- Names over TCP: queries that come in pieces or many at once, clients that do not read, and those that say nothing.
local hostlua = require "hostlua"

describe("Names over TCP", function()
  local dns_stream, listening, connections, later

  setup(function()
    package.loaded["cluster.tcp"] = {
      listen = function(options)
        listening = options
        return {}
      end,
      connect = function(options)
        local connection = { options = options, sent = "" }
        function connection:write(bytes) self.sent = self.sent .. bytes return 0 end
        function connection:close() self.is_closed = true end
        connections[#connections + 1] = connection
        return connection
      end,
    }
    dns_stream = require "cluster.apiserver.network.dns_stream"
  end)

  teardown(function()
    package.loaded["cluster.tcp"] = nil
    package.loaded["cluster.apiserver.network.dns_stream"] = nil
  end)

  -- "slow…" is answered when the spec says so, "bad…" never; all else at once.
  local function answer(query, reply, most)
    assert.equal(65535, most)
    if query:find "^slow" then
      table.insert(later, function() reply("late " .. query) end)
      return nil, true
    elseif not query:find "^bad" then
      return "re " .. query
    end
  end

  before_each(function()
    hostlua.freeze(1783072800)
    connections, later = {}, {}
    assert(dns_stream.serve("10.0.0.10", 53, answer))
  end)

  after_each(function() -- so that no timer is left
    for _, connection in ipairs(connections) do
      if connection.calls then
        connection.calls.closed()
      end
    end
  end)

  local function text(...)
    return (">" .. ("s2"):rep(select("#", ...))):pack(...)
  end

  -- A client; `reads`: whether it takes what it is sent.
  local function open(reads)
    local client = { sent = {}, waiting = 0 }
    function client:write(bytes)
      assert(not self.has_output_ended and not self.is_closed, "written to after its end")
      self.sent[#self.sent + 1] = bytes
      self.waiting = reads == false and self.waiting + #bytes or 0
      return self.waiting
    end
    function client:pause(paused) self.is_paused = paused end
    function client:end_output() self.has_output_ended = true end
    function client:close() self.is_closed = true end
    function client:text() return table.concat(self.sent) end
    client.calls = listening.accepted(client)
    connections[#connections + 1] = client
    return client
  end

  it("are answered, several queries on a connection, however they are cut into pieces", function()
    local client = open()
    local all = text("a", "bb", ("c"):rep(5000))
    for i = 1, 8 do
      client.calls.data(all:sub(i, i))
    end
    client.calls.data(all:sub(9))
    assert.equal(text("re a", "re bb", "re " .. ("c"):rep(5000)), client:text())
    assert.is_falsy(client.is_closed)
  end)

  it("are answered as answers are ready, also after the client has ended its queries", function()
    local client = open()
    client.calls.data(text("slow 1", "quick", "slow 2"))
    client.calls.ended()
    assert.equal(text "re quick", client:text())
    later[2]()
    assert.is_falsy(client.has_output_ended)
    later[1]()
    assert.equal(text("re quick", "late slow 2", "late slow 1"), client:text())
    assert.is_true(client.has_output_ended)
  end)

  it("end with what is no query, and nothing is answered after that", function()
    local client = open()
    client.calls.data(text("slow", "bad", "never"))
    assert.is_true(client.is_closed)
    later[1]()
    assert.equal("", client:text())
  end)

  it("are closed when no query comes for ten seconds, whatever else does", function()
    local client = open()
    hostlua.advance(9)
    client.calls.data(text "a")
    hostlua.advance(9)
    client.calls.data(text("b"):sub(1, 2))
    assert.is_falsy(client.is_closed)
    hostlua.advance(1)
    assert.is_true(client.is_closed)
  end)

  it("are read no further than to 64 queries under way", function()
    local client = open()
    client.calls.data(text("slow"):rep(200))
    assert.equal(64, #later)
    assert.is_true(client.is_paused)
    for i = 1, 100 do
      later[i]()
    end
    assert.equal(164, #later)
    for i = 101, 200 do
      later[i]()
    end
    assert.is_false(client.is_paused)
    assert.equal(200, #client.sent)
  end)

  it("are read no further while a client does not read its answers", function()
    local client = open(false)
    local query = ("x"):rep(60000)
    for _ = 1, 10 do
      client.calls.data(text(query))
    end
    assert.equal(5, #client.sent)
    assert.is_true(client.is_paused)
    client.waiting = 0
    client.calls.drained()
    assert.equal(10, #client.sent)
    client.calls.ended()
    assert.is_falsy(client.has_output_ended)
    client.waiting = 0
    client.calls.drained()
    assert.is_true(client.has_output_ended)
  end)

  it("have 256 connections at most", function()
    for _ = 1, 256 do
      assert.is_table(open().calls)
    end
    local more = open()
    assert.is_nil(more.calls)
    connections[1].calls.closed()
    assert.is_table(open().calls)
  end)

  it("are asked for with the first message that comes as the answer", function()
    local heard = {}
    local function ask(address)
      return dns_stream.ask(address, 53, "query", function(bytes)
        heard[#heard + 1] = bytes or "none"
      end)
    end
    local connection = ask "192.0.2.1"
    assert.equal(text "query", connection.sent)
    connection.options.data(text("answer"):sub(1, 5))
    connection.options.data(text("answer", "another"):sub(6))
    assert.is_true(connection.is_closed)
    ask("192.0.2.1").options.closed "Connection refused"
    assert.is_nil(ask "2001:db8::1")
    assert.same({ "answer", "none" }, heard)
  end)
end)
