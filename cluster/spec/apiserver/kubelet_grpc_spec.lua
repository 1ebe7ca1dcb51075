-- The health of a server by gRPC: the bytes that are sent, and the words about each answer.
local grpc_health = require "cluster.kubelet.grpc_health"
local hostlua = require "hostlua"

local GRPC = { { "content-type", "application/grpc" } }


describe("The health of a server by gRPC", function()
  local calls, before, results

  before_each(function()
    hostlua.freeze(1783072800)
    before, calls, results = package.loaded["cluster.http"], {}, {}
    package.loaded["cluster.http"] = { client = function()
      return { request = function(_, options)
        calls[#calls + 1] = options
        return { cancel = function() options.is_canceled = true end }
      end }
    end }
  end)

  after_each(function()
    package.loaded["cluster.http"] = before
  end)

  -- Asks, and returns the call.
  local function check(service, seconds)
    grpc_health.check("10.244.0.7", 5000, service, seconds or 1, function(ok, message)
      results[#results + 1] = ok and "healthy" or message
    end)
    return calls[#calls]
  end

  -- An answer whole: its head, its body, what follows.
  local function answer(call, code, fields, body, trailer, why)
    local all = table.move(fields, 1, #fields, 1, {})
    call.head(code, all)
    if body then
      call.data(body:sub(1, 3))
      call.data(body:sub(4))
    end
    table.move(trailer or {}, 1, #(trailer or {}), #all + 1, all)
    call.done(why)
  end

  local function message(bytes)
    return string.pack(">Bs4", 0, bytes)
  end

  it("is asked for with the length of the message in front, of one service or of all", function()
    local call = check ""
    assert.same({ "POST", "http://10.244.0.7:5000/grpc.health.v1.Health/Check", true }, {
      call.method, call.url, call.http2 })
    assert.same({ ["Content-Type"] = "application/grpc", TE = "trailers", ["User-Agent"] = "kube-probe/1.36" },
      call.headers)
    assert.equal("\0\0\0\0\0", call.body)
    assert.equal("\0\0\0\0\6\x0a\4live", check("live").body)
    local long = ("s"):rep(300)
    assert.equal(message("\x0a\xac\2" .. long), check(long).body)
    for _, each in ipairs(calls) do
      answer(each, 200, GRPC)
    end
  end)

  it("is what the message says, whatever else is in it", function()
    local ended = { { "grpc-status", "0" } }
    for _, bytes in ipairs {
      "\8\1", "\8\2", "\8\3", "", "\8\9", "\x12\3abc\8\1", "\x15abcd\x19abcdefgh\8\1\x80\1\5",
      "\8", "\x12\9a", "\x0b",
    } do
      answer(check(), 200, GRPC, message(bytes), ended)
    end
    local broken = "error: health rpc probe failed: rpc error: code = Internal desc = grpc: failed to unmarshal the "
      .. "received message"
    assert.same({
      "healthy", 'service unhealthy (responded with "NOT_SERVING")',
      'service unhealthy (responded with "SERVICE_UNKNOWN")', 'service unhealthy (responded with "UNKNOWN")',
      'service unhealthy (responded with "9")', "healthy", "healthy", broken, broken, broken,
    }, results)
  end)

  it("is told of in the kubelet's words when the call fails", function()
    local function with(code, text)
      return { GRPC[1], { "grpc-status", code }, { "grpc-message", text } }
    end
    answer(check(), 200, with("12", "unknown service"))
    answer(check(), 200, with("5", "unknown%20service %25"))
    answer(check(), 200, with("4", "late"))
    answer(check(), 200, with("99", "odd"))
    answer(check(), 404, { { "Content-Type", "text/plain" } }, "no")
    answer(check(), 503, {})
    answer(check(), 200, GRPC, message "\8\1")
    answer(check(), 200, GRPC, nil, nil, "the connection broke")
    answer(check(), 200, GRPC, nil, { { "grpc-status", "0" } })
    local failed = "error: health rpc probe failed: rpc error: code = "
    local unimplemented = "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): "
    assert.same({
      unimplemented .. "unknown service",
      failed .. "NotFound desc = unknown service %",
      "timeout: health rpc did not complete within 1s",
      failed .. "Code(99) desc = odd",
      unimplemented .. 'unexpected HTTP status code received from server: 404 (Not Found); transport: received '
        .. 'unexpected content-type "text/plain"',
      failed .. "Unavailable desc = unexpected HTTP status code received from server: 503 (Service Unavailable); "
        .. "malformed header: missing HTTP content-type",
      failed .. "Internal desc = server closed the stream without sending trailers",
      failed .. "Unavailable desc = the connection broke",
      failed .. "Internal desc = cardinality violation: received no response message from non-server-streaming RPC",
    }, results)
  end)

  it("is given up when its time is over", function()
    local call = check("", 90)
    hostlua.advance(90)
    assert.is_true(call.is_canceled)
    assert.same({ "timeout: health rpc did not complete within 1m30s" }, results)
  end)

  it("is asked for again while nothing listens, until its time is over", function()
    check("", 3).done "connection refused"
    assert.equal(1, #calls)
    hostlua.advance(1)
    assert.equal(2, #calls)
    calls[2].done "connection refused"
    hostlua.advance(1)
    answer(calls[3], 200, GRPC, message "\8\1", { { "grpc-status", "0" } })
    hostlua.advance(5)
    assert.same({ "healthy" }, results)
    check("", 1).done "connection refused"
    hostlua.advance(1)
    hostlua.advance(5)
    assert.equal('timeout: failed to connect service "10.244.0.7:5000" within 1s: context deadline exceeded',
      results[2])
    assert.equal(2, #results)
  end)
end)
