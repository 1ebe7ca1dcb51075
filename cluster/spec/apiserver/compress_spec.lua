--- Answers in gzip's format: who gets them, and that they are the same answers.
local apiserver = require "cluster.apiserver"
local host = require "cluster.host"

local CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
local LARGE = 128 * 1024


-- Sends a GET that takes an encoding. @return table { code =, type =, body =, headers = }
local function get(server, path, encoding, more)
  local headers = { ["accept-encoding"] = encoding }
  for name, value in pairs(more or {}) do
    headers[name] = value
  end
  local answer = {}
  local plain, query = path:match "^([^?]*)%??(.*)$"
  server:handle({ method = "GET", path = plain, query = query, headers = headers, body = "" }, {
    send = function(_, code, media, body, sent)
      answer.code, answer.type, answer.body, answer.headers = code, media, body, sent or {}
    end,
  })
  return answer
end


-- Decompresses bytes with gzip.
local function opened(bytes)
  local path = os.tmpname()
  local file = assert(io.open(path, "wb"))
  file:write(bytes)
  file:close()
  local pipe = assert(io.popen("gzip -dc < " .. path))
  local text = pipe:read "a"
  assert(pipe:close(), "not in gzip's format")
  os.remove(path)
  return text
end


-- A server with one ConfigMap whose text in JSON is of a size.
local function server_with(size)
  local server = apiserver.new()
  local function store(length)
    server:call("DELETE", CONFIGMAPS .. "/a")
    assert.equal(201, (server:call("POST", CONFIGMAPS,
      { metadata = { name = "a" }, data = { k = ("x"):rep(length) } })))
    return #get(server, CONFIGMAPS .. "/a").body
  end
  assert.equal(size, store(1000 + size - store(1000)))
  return server
end


describe("an answer", function()
  it("is compressed from 128 KiB on, for clients that take gzip", function()
    local server = server_with(LARGE + 1)
    local plain = get(server, CONFIGMAPS .. "/a").body
    for _, encoding in ipairs { "gzip", "deflate, gzip , br" } do
      local answer = get(server, CONFIGMAPS .. "/a", encoding)
      assert.equal("gzip", answer.headers["Content-Encoding"])
      assert.equal("Accept-Encoding", answer.headers.Vary)
      assert.equal("application/json", answer.type)
      assert.is_true(#answer.body < LARGE // 10)
      assert.equal(plain, opened(answer.body))
    end
    for _, encoding in ipairs { "", "identity", "gzip;q=0", "x-gzip" } do
      assert.is_nil(get(server, CONFIGMAPS .. "/a", encoding).headers["Content-Encoding"])
    end
  end)

  it("is not compressed when it is smaller", function()
    local server = server_with(LARGE)
    local answer = get(server, CONFIGMAPS .. "/a", "gzip")
    assert.is_nil(answer.headers["Content-Encoding"])
    assert.equal(LARGE, #answer.body)
  end)

  it("is compressed in YAML, too, and told whole to those who watch requests", function()
    local server = server_with(LARGE * 4)
    local told
    server:audit(function(record) told = record.answer end)
    local yaml = { accept = "application/yaml" }
    local answer = get(server, CONFIGMAPS .. "/a", "gzip", yaml)
    assert.equal("application/yaml", answer.type)
    assert.equal(told, opened(answer.body))
    assert.equal(told, get(server, CONFIGMAPS .. "/a", nil, yaml).body)
  end)

  it("that is an aggregated discovery document keeps its headers", function()
    local aggregated = { accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList" }
    local server = apiserver.new()
    local plain, answer = get(server, "/apis", nil, aggregated), get(server, "/apis", "gzip", aggregated)
    assert.equal(plain.headers.ETag, answer.headers.ETag)
    assert.equal(#plain.body > LARGE and "Accept, Accept-Encoding" or "Accept", answer.headers.Vary)
  end)
end)


describe("a gzipper", function()
  it("takes pieces, and none after the last", function()
    local gzipper = host.stream.gzipper()
    local text = "one, two"
    local bytes = gzipper:add(text, 1, 5) .. gzipper:add(text, 6, 5) .. gzipper:add(text, 6, 8)
    assert.equal(text, opened(bytes))
    assert.has_error(function() gzipper:add("three", 1, 5) end)
    assert.equal("", opened(host.stream.gzipper():add("", 1, 0)))
  end)

  it("takes places in the text only", function()
    for _, places in ipairs { { 0, 1 }, { 1, 4 }, { 3, 1 }, { 1, -1 }, { math.mininteger, math.maxinteger } } do
      assert.has_error(function() host.stream.gzipper():add("abc", places[1], places[2]) end)
    end
  end)
end)


describe("the document of all kinds", function()
  local server
  before_each(function() server = apiserver.new() end)

  it("is the same in gzip's format, whatever its size", function()
    local plain = get(server, "/openapi/v2").body
    local answer = get(server, "/openapi/v2", "gzip")
    assert.equal(plain, opened(answer.body))
    assert.equal("Accept, Accept-Encoding", answer.headers.Vary)
  end)

  it("is compressed once, until a kind changes", function()
    local compress = require "cluster.apiserver.compress"
    local count, gzip = 0, compress.gzip
    compress.gzip = function(...)
      count = count + 1
      return gzip(...)
    end
    local function ask()
      return get(server, "/openapi/v2", "gzip")
    end
    local first, again = ask(), ask()
    assert(server:call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
      metadata = { name = "things.spec.test" }, spec = {
        group = "spec.test", scope = "Namespaced", names = { plural = "things", kind = "Thing" },
        versions = {
          { name = "v1", served = true, storage = true, schema = { openAPIV3Schema = { type = "object" } } },
        },
      },
    }) == 201)
    require("hostlua").poll()
    local changed = ask()
    compress.gzip = gzip
    assert.equal(first.body, again.body)
    assert.is_truthy(opened(changed.body):find("test.spec.v1.Thing", 1, true))
    assert.are_not.equal(first.headers.ETag, changed.headers.ETag)
    assert.equal(2, count)
  end)

  it("is not sent to who has it", function()
    local etag = get(server, "/openapi/v2").headers.ETag
    for _, header in ipairs { etag, "*", '"other", ' .. etag, "W/" .. etag } do
      assert.equal(304, get(server, "/openapi/v2", "gzip", { ["if-none-match"] = header }).code, header)
    end
    for _, header in ipairs { "", '"other"', etag:sub(2, -2) } do
      assert.equal(200, get(server, "/openapi/v2", "gzip", { ["if-none-match"] = header }).code, header)
    end
  end)
end)
