-- Names of a cluster, asked for as resolvers do it, and bytes that are no query.
local dns = require "cluster.apiserver.network.dns"
local dns_message = require "cluster.apiserver.network.dns_message"
local testserver = require "testserver"

local CORE = "/api/v1/namespaces/default"
local SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
local HEAD = 12


local function query(name, type, more)
  local labels = {}
  for label in name:gmatch "[^.]+" do
    labels[#labels + 1] = (">s1"):pack(label)
  end
  more = more or {}
  return (">I2 I2 I2 I2 I2 I2"):pack(7, more.flags or 0x0100, 1, 0, 0, more.size and 1 or 0)
    .. table.concat(labels) .. "\0" .. (">I2 I2"):pack(dns_message.TYPES[type], more.class or 1)
    .. (more.size and ("\0" .. (">I2 I2 I4 I2"):pack(41, more.size, 0, 0)) or "")
end


-- An address, or a name without its dots at places that the specs do not look at.
local function data_text(type, data)
  if type == dns_message.TYPES.A then
    return ("%d.%d.%d.%d"):format(data:byte(1, 4))
  end
  local port, at, labels = "", 1, {}
  if type == dns_message.TYPES.SRV then
    port, at = ("%d "):format((">I2"):unpack(data, 5)), 7
  end
  while data:byte(at) ~= 0 do
    local label
    label, at = (">s1"):unpack(data, at)
    labels[#labels + 1] = label
  end
  return port .. table.concat(labels, ".")
end


-- "rcode" and the sorted records of an answer.
local function read(answer, asked)
  local id, flags, questions, count = (">I2 I2 I2 I2"):unpack(answer)
  assert.same({ 7, 0x8000, 1 }, { id, flags & 0x8000, questions })
  local question_end = asked:find("\0", HEAD + 1, true) + 4
  assert.equal(asked:sub(HEAD + 1, question_end), answer:sub(HEAD + 1, question_end))
  local at, list = question_end + 1, {}
  for i = 1, count do
    if answer:byte(at) == 0xC0 then
      at = at + 2
    else
      at = answer:find("\0", at, true) + 1
    end
    local type, _, _, data, after = (">I2 I2 I4 s2"):unpack(answer, at)
    list[i], at = data_text(type, data), after
  end
  table.sort(list)
  return flags & 15, list
end


describe("The names of a cluster", function()
  local cluster, known

  local function ask(name, type, more)
    local asked = query(name, type or "A", more)
    return read(assert(known:answer(asked)), asked)
  end

  local function add_service(name, spec)
    spec.ports = spec.ports or { { port = 80, name = "http" } }
    cluster:must("POST", CORE .. "/services", { metadata = { name = name }, spec = spec })
  end

  local function add_slice(name, endpoints)
    cluster:must("POST", SLICES, {
      metadata = { name = name, labels = { ["kubernetes.io/service-name"] = name } }, addressType = "IPv4",
      endpoints = endpoints, ports = { { name = "http", port = 8080, protocol = "TCP" } },
    })
  end

  before_each(function()
    cluster = testserver.new()
    known = dns.new(cluster.server)
    add_service("web", { clusterIP = "10.0.7.7" })
    add_service("db", { clusterIP = "None", selector = { app = "db" } })
    add_slice("db", {
      { addresses = { "10.244.0.5" }, hostname = "db-0", conditions = { ready = true } },
      { addresses = { "10.244.0.6" }, conditions = { ready = true } },
      { addresses = { "10.244.0.7" }, hostname = "db-2", conditions = { ready = false } },
    })
    cluster:must("POST", CORE .. "/services", {
      metadata = { name = "alias" }, spec = { type = "ExternalName", externalName = "web.default.svc.cluster.local" },
    })
    cluster:must("POST", CORE .. "/services", {
      metadata = { name = "long" }, spec = { type = "ExternalName", externalName = ("a"):rep(200) .. ".example.com" },
    })
  end)

  local CASES = {
    { "web.default.svc.cluster.local", "A", 0, "10.0.7.7" },
    { "WEB.Default.svc.cluster.local", "A", 0, "10.0.7.7" },
    { "web.default.svc.cluster.local", "AAAA", 0 },
    { "_http._tcp.web.default.svc.cluster.local", "SRV", 0, "80 web.default.svc.cluster.local" },
    { "_none._tcp.web.default.svc.cluster.local", "SRV", 3 },
    { "_http._udp.web.default.svc.cluster.local", "SRV", 3 },
    { "db.default.svc.cluster.local", "A", 0, "10.244.0.5", "10.244.0.6" },
    { "db-0.db.default.svc.cluster.local", "A", 0, "10.244.0.5" },
    { "10-244-0-6.db.default.svc.cluster.local", "A", 0, "10.244.0.6" },
    { "db-2.db.default.svc.cluster.local", "A", 3 },
    { "_http._tcp.db.default.svc.cluster.local", "SRV", 0, "8080 10-244-0-6.db.default.svc.cluster.local",
      "8080 db-0.db.default.svc.cluster.local" },
    { "alias.default.svc.cluster.local", "A", 0, "10.0.7.7", "web.default.svc.cluster.local" },
    { "7.7.0.10.in-addr.arpa", "PTR", 0, "web.default.svc.cluster.local" },
    { "8.7.0.10.in-addr.arpa", "PTR", 3 },
    { "10-244-0-9.default.pod.cluster.local", "A", 0, "10.244.0.9" },
    { "10-244-0-900.default.pod.cluster.local", "A", 3 },
    { "default.svc.cluster.local", "A", 0 },
    { "nobody.default.svc.cluster.local", "A", 3 },
    { "web.nowhere.svc.cluster.local", "A", 3 },
    { "a.b.web.default.svc.cluster.local", "A", 3 },
    { "web.default.cluster.local", "A", 3 },
    { "cluster.local", "A", 0 },
    { "long.default.svc.cluster.local", "A", 3 },
    { "web", "A", 3 },
    { "example.com", "A", 5 },
  }
  for _, case in ipairs(CASES) do
    it(("has for %s %s what it should"):format(case[2], case[1]), function()
      local rcode, records = ask(case[1], case[2])
      assert.same({ table.unpack(case, 3) }, { rcode, table.unpack(records) })
    end)
  end

  it("answers with as many addresses as there is room for, and says when these are not all", function()
    local endpoints = {}
    for i = 1, 200 do
      endpoints[i] = { addresses = { "10.244.9." .. i }, conditions = { ready = true } }
    end
    add_service("many", { clusterIP = "None", selector = { app = "many" } })
    add_slice("many", endpoints)
    local name = "many.default.svc.cluster.local"
    local _, records = ask(name)
    assert.equal((512 - HEAD - #name - 6) // 16, #records)
    _, records = ask(name, "A", { size = 4096 })
    assert.equal((1232 - HEAD - #name - 6 - 11) // 16, #records)
    local asked = query(name, "A")
    assert.is_true(dns_message.is_cut(known:answer(asked)))
    local whole = known:answer(asked, nil, 65535)
    assert.is_false(dns_message.is_cut(whole))
    assert.equal(200, #select(2, read(whole, asked)))
  end)

  it("says what it does not serve, and nothing to an answer", function()
    local asked = query("web.default.svc.cluster.local", "A", { class = 3 })
    assert.equal(5, (read(known:answer(asked), asked)))
    assert.is_nil(known:answer(query("web.default.svc.cluster.local", "A", { flags = 0x8000 })))
    assert.equal(4, (">I2 I2"):unpack(known:answer(query("web", "A", { flags = 0x2800 })), 3) & 15)
  end)

  it("survives bytes that are no query", function()
    local good = query("db.default.svc.cluster.local", "A", { size = 1232 })
    -- Only a query gets an answer. The answer has the query's number, is marked as an answer, and fits the size limit.
    local function check(bytes)
      local answer = known:answer(bytes)
      local is_query = #bytes >= HEAD and bytes:byte(3) < 0x80
      assert.equal(is_query, answer ~= nil)
      if answer then
        assert.equal(bytes:sub(1, 2), answer:sub(1, 2))
        assert.is_true(answer:byte(3) >= 0x80 and #answer >= HEAD and #answer <= 1232)
      end
    end
    math.randomseed(5)
    for i = 0, #good do
      check(good:sub(1, i))
    end
    for _ = 1, 3000 do
      local bytes = { good:byte(1, -1) }
      for _ = 1, math.random(4) do
        bytes[math.random(#bytes)] = math.random(0, 255)
      end
      check(string.char(table.unpack(bytes)))
    end
    for _ = 1, 3000 do
      local bytes = {}
      for i = 1, math.random(0, 80) do
        bytes[i] = math.random(0, 255)
      end
      check(string.char(table.unpack(bytes)))
    end
    check(good:rep(100):sub(1, 4096))
    assert.equal(1, (">I2"):unpack(known:answer("\0\7\0\0\0\1\0\0\0\0\0\0\xC0\x0C\0\1\0\1"), 3) & 15)
    assert.equal(1, (">I2"):unpack(known:answer("\0\7\0\0\0\2" .. good:sub(7)), 3) & 15)
  end)
end)
