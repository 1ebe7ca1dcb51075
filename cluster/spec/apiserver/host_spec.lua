--- The bindings that the host's own Lua has: host/script/host_*.c. JSON and patterns have files of their own.
local host = require "cluster.host"
local hostlua = require "hostlua"

local json = host.json


describe("host.yaml", function()
  it("reads documents, without the empty ones", function()
    local list = host.yaml.decode "a: 1\n---\n---\n- x\n- {}\n---\n# nothing\n"
    assert.equal('[{"a":1},["x",{}]]', json.encode(list))
  end)

  it("reads scalars as kubectl does", function()
    local list = host.yaml.decode "[yes, 'true', true, 0o17, 1.5, ~, 2001-01-01, 0644, 1_000, 1.0]"
    assert.equal('[true,"true",true,15,1.5,null,"2001-01-01",420,1000,1]', json.encode(list[1]))
  end)

  it("gives the documents one by one, with their lines", function()
    local list = host.yaml.documents "a: 1\n---\nb: [\nc: d\n---\n# c\nd: [on]\n--- x\n"
    assert.equal('[{"line":1,"value":{"a":1}},{"line":3,"wrong":"line 5: did not find expected \',\' or \']\'"},'
      .. '{"line":6,"value":{"d":[true]}},{"line":8,"wrong":"line 8: invalid Yaml document separator: x"}]',
      json.encode(list))
    assert.same({}, host.yaml.documents "# nothing\n")
  end)

  it("gives the first document as JSON, and the keys that come twice", function()
    assert.same({ '{"a":2,"b":1}', 'line 3: key "a" already set in map\n' },
      { host.yaml.to_json("b: 1\na: 1\na: 2\n---\nc: [", true) })
    assert.same({ '{"a":2}', "" }, { host.yaml.to_json "a: 1\na: 2\n" })
    assert.same({ "null", "" }, { host.yaml.to_json("", true) })
    assert.same({ nil, "yaml: line 1: did not find expected ',' or ']'" }, { host.yaml.to_json "a: [b\nc: d" })
  end)

  it("returns nil and the line for what is no YAML", function()
    local list, message = host.yaml.decode "a: 1\nb: [\n"
    assert.is_nil(list)
    assert.is_truthy(message:find "line", message)
  end)

  it("refuses an alias bomb", function()
    local lines = { "a: &a [x,x,x,x,x,x,x,x,x]" }
    for i = 1, 12 do
      local name, before = string.char(97 + i), string.char(96 + i)
      lines[#lines + 1] = ("%s: &%s [*%s,*%s,*%s,*%s,*%s,*%s,*%s,*%s]"):format(name, name, before, before, before,
        before, before, before, before, before)
    end
    local list, message = host.yaml.decode(table.concat(lines, "\n"))
    assert.is_nil(list)
    assert.equal("string", type(message))
  end)

  it("gives an empty list for an empty text", function()
    assert.equal("[]", json.encode(host.yaml.decode ""))
  end)
end)


describe("host.base64", function()
  for text, encoded in pairs { [""] = "", a = "YQ==", ab = "YWI=", abc = "YWJj", ["\0\xff"] = "AP8=" } do
    it(("goes both ways for %q"):format(text), function()
      assert.equal(encoded, host.base64.encode(text))
      assert.equal(text, host.base64.decode(encoded))
    end)
  end

  it("passes over line ends, and refuses the rest", function()
    assert.equal("abc", host.base64.decode "YW\nJj\r\n")
    for _, bad in ipairs { "YQ", "YQ=", "Y===", "Y!Jj", "YQ==YQ==" } do
      assert.is_nil(host.base64.decode(bad), bad)
    end
  end)
end)


describe("host's digests", function()
  it("are those of FIPS 180-4 and RFC 4231", function()
    assert.equal("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", host.sha256 "abc")
    assert.equal("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", host.sha256 "")
    local mac = host.hmac_sha256("Jefe", "what do ya want for nothing?")
    assert.equal("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
      (mac:gsub(".", function(c) return ("%02x"):format(c:byte()) end)))
  end)
end)


describe("host's clock and loop", function()
  before_each(function()
    hostlua.freeze(1783072800.5) -- 2026-07-03T10:00:00.5Z
  end)

  it("tells the time of the seam", function()
    assert.equal(1783072800.5, host.now())
    assert.equal("2026-07-03T10:00:00Z", host.timestamp())
    assert.equal("2026-07-03T10:00:00.500000Z", host.timestamp_micro())
    local before = host.monotonic()
    hostlua.advance(2)
    assert.equal(1783072802.5, host.now())
    assert.is_true(math.abs(host.monotonic() - before - 2) < 1e-6)
  end)

  it("calls timers in the order they are due, each once", function()
    local calls = {}
    for _, seconds in ipairs { 3, 1, 2, 1 } do
      host.after(seconds, function() calls[#calls + 1] = seconds end)
    end
    hostlua.poll()
    assert.same({}, calls)
    hostlua.advance(1)
    assert.same({ 1, 1 }, calls)
    hostlua.advance(9)
    assert.same({ 1, 1, 2, 3 }, calls)
    hostlua.advance(9)
    assert.equal(4, #calls)
  end)

  it("does not call a timer that was stopped", function()
    local called = 0
    local timer = host.after(1, function() called = called + 1 end)
    timer:stop()
    timer:stop()
    hostlua.advance(2)
    assert.equal(0, called)
  end)

  it("keeps a timer that nobody holds", function()
    local called = 0
    host.after(1, function() called = called + 1 end)
    collectgarbage()
    collectgarbage()
    hostlua.advance(1)
    assert.equal(1, called)
  end)

  it("lets a timer begin another one and stop itself", function()
    local count, timer = 0, nil
    local function again()
      count = count + 1
      timer:stop()
      if count < 3 then
        timer = host.after(1, again)
      end
    end
    timer = host.after(1, again)
    for _ = 1, 5 do
      hostlua.advance(1)
    end
    assert.equal(3, count)
  end)

  it("runs deferred functions in their order, and what they defer", function()
    local calls = {}
    host.defer(function()
      calls[#calls + 1] = "a"
      host.defer(function() calls[#calls + 1] = "c" end)
    end)
    host.defer(function() calls[#calls + 1] = "b" end)
    assert.same({}, calls)
    hostlua.poll()
    assert.same({ "a", "b", "c" }, calls)
  end)

  it("releases what is garbage, also from a deferred function", function()
    local held = setmetatable({ {} }, { __mode = "v" })
    host.defer(host.release_memory)
    hostlua.poll()
    assert.is_nil(held[1])
  end)

  it("runs callbacks while a coroutine drives the loop", function()
    local seen
    local co = coroutine.wrap(function()
      host.after(1, function() seen = json.decode '{"a":[1]}' end)
      hostlua.advance(1)
      coroutine.yield(seen.a[1])
    end)
    assert.equal(1, co())
  end)

  it("refuses a loop within the loop, and bad arguments", function()
    local message
    host.defer(function() message = select(2, hostlua.poll()) end)
    hostlua.poll()
    assert.is_truthy(message:find "inside")
    assert.is_false(pcall(host.after, 1))
    assert.is_false(pcall(host.after, "soon", print))
    assert.is_false(pcall(host.defer, 1))
  end)

  it("waits for any number of seconds, from none to 31 years", function()
    local fired = {}
    for name, seconds in pairs { before = -1, least = math.mininteger, none = 0 / 0, most = 1e300, all = math.huge } do
      host.after(seconds, function() fired[name] = true end)
    end
    hostlua.advance(1)
    assert.same({ before = true, least = true, none = true }, fired)
    hostlua.advance(1e9)
    assert.same({ before = true, least = true, none = true, most = true, all = true }, fired)
  end)
end)


describe("host's random", function()
  it("repeats itself for a seed, within its bounds", function()
    local function draw()
      hostlua.seed(7)
      local list = { host.uuid() }
      for i = 1, 100 do
        list[i + 1] = host.random(10)
        assert.is_true(list[i + 1] >= 0 and list[i + 1] < 10)
      end
      return list
    end
    assert.same(draw(), draw())
    assert.equal(0, host.random(1))
    assert.is_false(pcall(host.random, 0))
  end)

  it("makes UUIDs of version 4", function()
    assert.is_truthy(host.uuid():match "^%x+%-%x%x%x%x%-4%x%x%x%-[89ab]%x%x%x%-%x+$")
    assert.equal(36, #host.uuid())
  end)

  it("gives secrets that no seed repeats", function()
    hostlua.seed(7)
    local first = host.secret(32)
    hostlua.seed(7)
    assert.equal(32, #first)
    assert.not_equal(first, host.secret(32))
    assert.is_false(pcall(host.secret, 257))
  end)
end)


describe("host.log", function()
  it("refuses what it cannot write", function()
    assert.is_false(pcall(host.log, "loud", "x"))
    assert.is_false(pcall(host.log, "error", "x", { f = print }))
    assert.is_false(pcall(host.log, "error", "x", { 1 }))
    host.log("debug", "not written", { a = 1 })
  end)
end)
