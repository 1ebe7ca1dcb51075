-- ctx.http in a test's world, where world.http answers; and what is refused before anything is sent. Over sockets:
-- spec/unit/operator/test_outbound.c.
local moonloop = require "moonloop"
local testing = require "moonloop.testing"

local Thing = moonloop.kind("example.com/v1", "Thing")

describe("ctx.http", function()
  local world, asked

  before_each(function()
    world, asked = testing.world(), {}
  end)

  local function answer(fn)
    world.http(function(request)
      asked[#asked + 1] = request
      return fn(request)
    end)
  end

  local function reconcile(mode)
    world.apply { apiVersion = "example.com/v1", kind = "Thing", metadata = { name = "a" }, spec = { mode = mode } }
    return world.get(Thing, "a").status
  end

  it("sends what it is told and gives the answer", function()
    answer(function()
      return { status = 200, headers = { ["Content-Type"] = "text/plain" }, body = "hello\n\0\xff" }
    end)
    local status = reconcile "get"
    assert.equal(200, status.status)
    assert.same({ ["content-type"] = "text/plain" }, status.headers)
    assert.equal("hello<0a><00><ff>", status.body)
    assert.equal(1, #asked)
    assert.equal("GET", asked[1].method)
    assert.equal("https://billing.example.com/customers/7?full=1", asked[1].url)
    assert.equal("Bearer t", asked[1].headers.Authorization)
    assert.equal("", asked[1].body)
  end)

  it("sends a body, and gives an answer whatever its status", function()
    answer(function() return { status = 503 } end)
    local status = reconcile "post"
    assert.equal(503, status.status)
    assert.equal("", status.body)
    assert.equal('{"name":"a"}', asked[1].body)
  end)

  it("asks servers below a pattern that is declared, and no others", function()
    answer(function() return { status = 200 } end)
    local function is_asked(host)
      local status = reconcile("below " .. host)
      if status.status ~= 200 then
        assert.matches("it is below no origin that the script declares", status.body, 1, true)
      end
      return status.status == 200
    end
    for _, host in ipairs { "a.example.org:8443", "A.B.Example.Org:8443/x", "a-b_c.example.org:8443?x=y" } do
      assert.is_true(is_asked(host), host)
    end
    assert.equal(3, #asked)
    assert.equal("https://A.B.Example.Org:8443/x", asked[2].url)
    for _, host in ipairs {
      "example.org:8443", ".example.org:8443", "a..example.org:8443", "a.example.org", "a.example.org:8444",
      "a.example.org:8443.evil.test", "a.example.org:8443@evil.test", "a.example.org:8443\\evil.test",
      "aexample.org:8443", "evil.test/.example.org:8443", "evil.test?.example.org:8443", "evil.test#.example.org:8443",
      "evil.test:80.example.org:8443", "evil.test@a.example.org:8443", "[::1].example.org:8443",
    } do
      assert.is_false(is_asked(host), host)
    end
    assert.equal(3, #asked)
  end)

  it("gives failures as errors that the script handles", function()
    answer(function() return nil end)
    assert.equal("Timeout", reconcile("get").kind)
    world = testing.world()
    answer(function() return nil, "connection refused" end)
    local status = reconcile "get"
    assert.equal("Network", status.kind)
    assert.equal("GET https://billing.example.com: Network: connection refused", status.message)
  end)

  it("leaves no trace of a failure that the script raises and that passes within five seconds", function()
    answer(function()
      if #asked < 4 then
        return nil, "connection refused"
      end
      return { status = 200 }
    end)
    reconcile "raise"
    world.advance "2s"
    local status = world.get(Thing, "a").status
    assert.equal(200, status.status)
    assert.is_nil(status.conditions)
    assert.same({}, world.events(Thing))
  end)

  it("reports a failure that the script raises and that does not pass", function()
    answer(function() return nil, "connection refused" end)
    reconcile "raise"
    world.advance "20s"
    local events = world.events(Thing)
    assert.equal("ReconcileFailed", events[1].reason)
    assert.matches("Network: connection refused", events[1].note)
  end)

  it("says what a test lacks", function()
    assert.matches("this test has no server", reconcile("get").message)
  end)

  it("refuses what it must not send", function()
    local texts = {
      "url: expected a URL", "no origin that the script declares", "no origin that", "no origin that", "no origin that",
      "no origin that", "no URL can have", "no URL can have", "method: expected GET", "Host is set by the host",
      "content%-length is set by the host", "Proxy%-Authorization is set by the host", "no line ends and control",
      "a name has letters", "expected a table of strings", "body: expected a string", "body: at most 1 MiB",
      "timeout: expected seconds", "timeout: expected seconds", "did you mean 'timeout'",
    }
    answer(function() return { status = 200 } end)
    for number, text in ipairs(texts) do
      assert.matches(text, reconcile("bad " .. number).message)
    end
    assert.equal(0, #asked)
  end)
end)
