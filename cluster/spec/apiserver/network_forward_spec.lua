-- Names that a cluster does not have: what the machine's resolvers are asked, on sockets that only note it, and whose
-- answers count.
local dns_message = require "cluster.apiserver.network.dns_message"
local hostlua = require "hostlua"
local testserver = require "testserver"

local CORE = "/api/v1/namespaces/default"
local HEAD = 12
local FAILED = 2


-- A query with the number 7.
local function query(name, type)
  return dns_message.with_id(dns_message.query(name, dns_message.TYPES[type or "A"]), 7)
end


-- An answer to what was sent: with an address, or as `rcode` says.
local function answer_to(sent, rcode, address)
  local asked = dns_message.read(sent)
  return dns_message.write(asked, rcode or dns_message.OK, address and { { type = "A", address = address } } or {})
end


local function rcode_of(answer)
  return (">I2"):unpack(answer, 3) & 15
end


describe("Names outside of the cluster", function()
  local cluster, dns, dns_forward, known, opened, connections, resolvers, answers

  setup(function()
    package.loaded["cluster.network"] = {
      outside = function(options)
        if options.address == "bad" then
          return nil, "Network is unreachable"
        end
        local socket = { options = options, sent = {} }
        function socket:send(bytes)
          table.insert(self.sent, bytes)
        end
        function socket:close()
          self.is_closed = true
        end
        opened[#opened + 1] = socket
        return socket
      end,
    }
    package.loaded["cluster.tcp"] = {
      connect = function(options)
        local connection = { options = options }
        function connection:write(bytes) self.sent = bytes end
        function connection:close() self.is_closed = true end
        connections[#connections + 1] = connection
        return connection
      end,
    }
    dns_forward = require "cluster.apiserver.network.dns_forward"
    dns = require "cluster.apiserver.network.dns"
  end)

  teardown(function()
    package.loaded["cluster.network"], package.loaded["cluster.tcp"] = nil, nil
    package.loaded["cluster.apiserver.network.dns_stream"] = nil
    package.loaded["cluster.apiserver.network.dns_forward"] = nil
  end)

  before_each(function()
    opened, connections, answers, resolvers = {}, {}, {}, { "192.0.2.1", "192.0.2.2" }
    cluster = testserver.new()
    known = dns.new(cluster.server, dns_forward.new(function()
      return resolvers
    end))
  end)

  after_each(function() -- so that no timer is left
    for _, socket in ipairs(opened) do
      if not socket.is_closed then
        socket.options.answer(answer_to(socket.sent[1]))
      end
    end
  end)

  local function ask(bytes, most)
    return (known:answer(bytes, function(answer)
      answers[#answers + 1] = answer
    end, most))
  end

  local function hear(socket, bytes)
    return socket.options.answer(bytes)
  end

  local function open_count()
    local count = 0
    for _, socket in ipairs(opened) do
      count = count + (socket.is_closed and 0 or 1)
    end
    return count
  end

  it("are asked of the first resolver, and its answer is passed on as it is", function()
    assert.is_nil(ask(query "Example.com"))
    assert.equal("192.0.2.1:53", opened[1].options.address .. ":" .. opened[1].options.port)
    local sent = opened[1].sent[1]
    assert.equal(query("Example.com"):sub(3), sent:sub(3))
    local answer = answer_to(sent, nil, "192.0.2.77")
    hear(opened[1], answer)
    assert.same({ dns_message.with_id(answer, 7) }, answers)
    assert.equal(0, open_count())
    assert.is_nil(ask(query "nobody.example.com"))
    hear(opened[2], answer_to(opened[2].sent[1], dns_message.NO_NAME))
    assert.equal(dns_message.NO_NAME, rcode_of(answers[2]))
  end)

  it("are asked again by TCP for a client that asks so, when the answer is cut", function()
    hostlua.freeze(1000)
    local function cut_answer(socket)
      local many = {}
      for i = 1, 100 do
        many[i] = { type = "A", address = "192.0.2." .. i }
      end
      return dns_message.write(dns_message.read(socket.sent[1]), dns_message.OK, many)
    end
    ask(query "example.com")
    hear(opened[1], cut_answer(opened[1]))
    assert.equal(0, #connections)
    assert.is_true(dns_message.is_cut(answers[1]))

    ask(query "example.com", 65535)
    hear(opened[2], cut_answer(opened[2]))
    assert.equal("192.0.2.1:53", connections[1].options.address .. ":" .. connections[1].options.port)
    assert.equal((">s2"):pack(opened[2].sent[1]), connections[1].sent)
    local whole = answer_to(opened[2].sent[1], nil, "192.0.2.77")
    connections[1].options.data((">s2"):pack(whole))
    assert.equal(dns_message.with_id(whole, 7), answers[2])

    for _, fail in ipairs {
      function(connection) connection.options.closed "Connection refused" end,
      function(connection) connection.options.data((">s2"):pack(query "example.com")) end,
      function(connection) hostlua.advance(2) assert.is_true(connection.is_closed) end,
    } do
      ask(query "example.com", 65535)
      hear(opened[#opened], cut_answer(opened[#opened]))
      fail(connections[#connections])
      assert.is_true(dns_message.is_cut(answers[#answers]))
    end
    assert.equal(5, #answers)
    assert.equal(0, open_count())
  end)

  it("are asked with a number that does not say which comes next", function()
    local seen, count = {}, 0
    for _ = 1, 100 do
      ask(query "example.com")
      local id = (">I2"):unpack(opened[#opened].sent[1])
      count = count + (seen[id] and 0 or 1)
      seen[id] = true
    end
    assert.is_true(count > 90)
  end)

  it("have no answer that is not to the question", function()
    ask(query "example.com")
    local sent = opened[1].sent[1]
    local good = answer_to(sent, nil, "192.0.2.77")
    local id = (">I2"):unpack(sent)
    hear(opened[1], dns_message.with_id(good, id ~ 1))
    hear(opened[1], sent) -- no answer, but the query
    hear(opened[1], dns_message.with_id(answer_to(query "example.org", nil, "192.0.2.78"), id))
    for len = 0, HEAD + 10 do
      hear(opened[1], good:sub(1, len))
    end
    assert.same({}, answers)
    hear(opened[1], good)
    assert.equal(1, #answers)
  end)

  it("are asked of the others when one is silent, and fail in less than the five seconds of clients", function()
    hostlua.freeze(1000)
    ask(query "example.com")
    hostlua.advance(1.6)
    assert.equal("192.0.2.2", opened[2].options.address)
    hostlua.advance(1.6)
    assert.equal("192.0.2.1", opened[3].options.address)
    assert.same({}, answers)
    hostlua.advance(1.6)
    assert.equal(FAILED, rcode_of(answers[1]))
    assert.equal(7, ((">I2"):unpack(answers[1])))
    assert.equal(0, open_count())
  end)

  it("may be answered late by who was asked first", function()
    hostlua.freeze(1000)
    ask(query "example.com")
    hostlua.advance(1.6)
    hear(opened[1], answer_to(opened[1].sent[1], nil, "192.0.2.77"))
    assert.equal(1, #answers)
    hostlua.advance(10)
    assert.equal(1, #answers)
    assert.equal(2, #opened)
  end)

  it("are asked of the next resolver when one refuses, or cannot be reached", function()
    hostlua.freeze(1000)
    ask(query "example.com")
    hear(opened[1], answer_to(opened[1].sent[1], dns_message.REFUSED))
    hear(opened[2], answer_to(opened[2].sent[1], nil, "192.0.2.77"))
    assert.equal(dns_message.OK, rcode_of(answers[1]))
    resolvers = { "bad", "192.0.2.3" }
    ask(query "example.com")
    hostlua.advance(0.1)
    hear(opened[3], answer_to(opened[3].sent[1], dns_message.FAILED))
    assert.equal(FAILED, rcode_of(answers[2])) -- there is no other one
  end)

  it("fail without a resolver, and when too many are asked at once", function()
    resolvers = {}
    assert.is_nil(ask(query "example.com"))
    assert.equal(FAILED, rcode_of(answers[1]))
    resolvers = { "192.0.2.1" }
    for _ = 1, 300 do
      ask(query "example.com")
    end
    assert.equal(256, #opened)
    assert.equal(1 + 300 - 256, #answers)
    hear(opened[1], answer_to(opened[1].sent[1]))
    ask(query "example.com")
    assert.equal(257, #opened)
  end)

  it("are none of the cluster's own", function()
    for _, name in ipairs { "web.default.svc.cluster.local", "cluster.local", "nobody.cluster.local",
      "9.9.244.10.in-addr.arpa", "9.9.0.10.in-addr.arpa" } do
      assert.is_string(ask(query(name)))
    end
    assert.equal(0, #opened)
    ask(query("9.2.0.192.in-addr.arpa", "PTR"))
    ask(query "notcluster.local")
    assert.equal(2, #opened)
  end)

  it("are followed from a Service that is an alias", function()
    cluster:must("POST", CORE .. "/services", {
      metadata = { name = "db" }, spec = { type = "ExternalName", externalName = "db.example.com" },
    })
    assert.is_nil(ask(query "db.default.svc.cluster.local"))
    assert.equal("db.example.com", dns_message.read(opened[1].sent[1]).name)
    hear(opened[1], answer_to(opened[1].sent[1], nil, "192.0.2.77"))
    assert.equal(2, ((">I2"):unpack(answers[1], 7)))
    assert.equal("\192\0\2\77", answers[1]:sub(-4))
    assert.is_string(ask(query("db.default.svc.cluster.local", "SRV")))
  end)

  it("are followed to an alias as long as a name may be", function()
    local longest = ("%s.%s.%s.%s"):format(("a"):rep(63), ("b"):rep(63), ("c"):rep(63), ("d"):rep(61))
    assert.equal(253, #longest)
    cluster:must("POST", CORE .. "/services", {
      metadata = { name = "db" }, spec = { type = "ExternalName", externalName = longest },
    })
    assert.is_nil(ask(query "db.default.svc.cluster.local"))
    assert.equal(longest, dns_message.read(opened[1].sent[1]).name)
  end)

  it("survive answers that are none", function()
    cluster:must("POST", CORE .. "/services", {
      metadata = { name = "db" }, spec = { type = "ExternalName", externalName = "db.example.com" },
    })
    math.randomseed(5)
    for _ = 1, 2000 do
      ask(query "db.default.svc.cluster.local")
      local socket = opened[#opened]
      local good = answer_to(socket.sent[1], nil, "192.0.2.77")
      local from = #socket.sent[1]
      local bytes = { good:byte(1, math.random(from, #good)) }
      for _ = 1, math.random(3) do
        bytes[math.random(7, 8) + (math.random(2) - 1) * math.random(0, #bytes - 8)] = math.random(0, 255)
      end
      hear(socket, string.char(table.unpack(bytes)))
      if not socket.is_closed then
        hear(socket, good)
      end
    end
    assert.equal(2000, #answers)
    assert.equal(0, open_count())
  end)
end)
