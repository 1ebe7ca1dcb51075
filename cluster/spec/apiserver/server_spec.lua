local host = require "cluster.host"
local testserver = require "testserver"
local yaml_text = require "cluster.apiserver.yaml_text"

local PATH = testserver.CONFIGMAPS


describe("a server", function()
  local world
  before_each(function() world = testserver.new() end)

  it("can be called from within", function()
    local server = world.server
    local code, made = server:call("POST", PATH, { metadata = { name = "a" } }, { user_agent = "spec" })
    assert.equal(201, code)
    assert.same({ 200, made }, { server:call("GET", PATH .. "/a") })
    assert.same({ 200, "ok" }, { server:call("GET", "/healthz") })
    local _, table = server:call("GET", PATH, nil, { accept = "application/json;as=Table;v=v1;g=meta.k8s.io" })
    assert.equal("Table", table.kind)
    assert.has_error(function() server:call("GET", PATH .. "?watch=true") end,
      "a stream has no answer: GET " .. PATH .. "?watch=true")
  end)

  it("tells of each request when it has ended", function()
    local records = {}
    world.server:audit(function(record) records[#records + 1] = record end)
    world:configmap "a"
    local stream = world:send("GET", PATH .. "?watch=true&timeoutSeconds=5")
    world:call("GET", PATH .. "/none")
    world:pass(6)
    assert.equal("", table.concat(stream:short(), " "):gsub("ADDED [%w.-]+ ?", ""))
    local told = {}
    for i, record in ipairs(records) do
      told[i] = ("%s %s %d"):format(record.verb, record.name or "", record.code)
    end
    assert.same({ "create  201", "get none 404", "watch  200" }, told)
    assert.equal("spec", records[1].user_agent)
    assert.equal("a", host.json.decode(records[1].answer).metadata.name)
  end)

  it("tells of changes", function()
    local changes = {}
    world.server:events(function(event)
      changes[#changes + 1] = event.type .. " " .. event.id .. " " .. event.entry.name
    end)
    world:configmap "a"
    world:must("DELETE", PATH .. "/a")
    assert.same({ "ADDED configmaps a", "DELETED configmaps a" }, changes)
  end)

  it("has parts of objects that others answer for", function()
    world.server:subresource("pods", "log", {
      get = function(request, reply)
        reply:send(200, "text/plain", "log of " .. request.name)
        return true
      end,
    })
    assert.equal("log of p", world:send("GET", "/api/v1/namespaces/default/pods/p/log").body)
    assert.equal(405, world:send("PUT", "/api/v1/namespaces/default/pods/p/log").code)
    assert.equal(404, world:send("GET", "/api/v1/namespaces/default/pods/p/log/more").code)
  end)

  it("goes on after a mistake of its own", function()
    world.server:subresource("pods", "log", { get = function() error "a mistake" end })
    local code, answer = world:call("GET", "/api/v1/namespaces/default/pods/p/log")
    assert.same({ 500, "InternalError" }, { code, answer.reason })
    assert.equal(200, (world:call("GET", "/api/v1/namespaces/default")))
  end)

  it("can start from what another one held", function()
    world:configmap("a", { data = { k = "v" } })
    local records, revision = world.server.store:dump()
    local other = testserver.new { restored_state = { records = records, revision = revision } }
    assert.same({ records, revision }, { other.server.store:dump() })
    assert.same(world:must("GET", PATH), other:must("GET", PATH))
  end)

  it("lets in only those it knows, when it is told of some", function()
    local jane = { name = "jane", groups = { "readers" } }
    local guarded = testserver.new { tokens = { secret = jane }, authorization = "rbac" }
    assert.equal(401, (guarded:call("GET", PATH, nil, { authorization = "Bearer wrong" })))
    local code, answer = guarded:call("GET", PATH, nil, { authorization = "Bearer secret" })
    assert.equal(403, code)
    assert.equal('configmaps is forbidden: User "jane" cannot list resource "configmaps" in API group "" in the '
      .. 'namespace "default"', answer.message)
  end)
end)


describe("answers for people", function()
  it("are JSON that can be read", function()
    local world = testserver.new()
    local body = world:send("GET", "/api/v1/namespaces/none?pretty=true").body
    assert.equal('{\n  "apiVersion": "v1",\n  "code": 404,', body:sub(1, 38))
  end)

  it("are YAML", function()
    local world = testserver.new()
    world:configmap("a", { data = { k = "v", lines = "one\ntwo\n" } })
    local reply = world:send("GET", PATH .. "/a", nil, { accept = "application/yaml" })
    assert.equal("application/yaml", reply.kind)
    assert.matches("^apiVersion: v1\ndata:\n  k: v\n  lines: |\n    one\n    two\nkind: ConfigMap\n", reply.body)
    assert.same("a", host.yaml.decode(reply.body)[1].metadata.name)
  end)

  for text, want in pairs {
    ["plain"] = "plain", ["two words"] = "two words", [""] = '""', ["yes"] = '"yes"', ["null"] = '"null"',
    ["1"] = '"1"',
    ["1.5e3"] = '"1.5e3"', ["0x1f"] = '"0x1f"', ["1:30"] = '"1:30"',
    ["2026-01-01T00:00:00Z"] = '"2026-01-01T00:00:00Z"',
    ["1.2.3"] = "1.2.3", ["a: b"] = "'a: b'", ["a #b"] = "'a #b'", ["#a"] = "'#a'", ["it's: x"] = "'it''s: x'",
    ["- a"] = "'- a'",
    ["-a"] = "-a", ["{a}"] = "'{a}'", [" a"] = "' a'", ["a "] = "'a '", ["\1"] = '"\\u0001"', ["*"] = "'*'",
    ["a:"] = "'a:'",
    ["a\nb"] = "|-\n  a\n  b", ["a\n\n"] = "|+\n  a\n", ["f:x"] = "f:x", ["."] = ".", [".5"] = '".5"', ["~"] = '"~"',
  } do
    it(("write %q as YAML"):format(text), function()
      assert.equal(want, yaml_text.scalar(text, "  "))
    end)
  end
end)
