-- Large, wide and deep objects: each is stored, or refused with a reason. A server that fails says "see the server's
-- log".
local host = require "cluster.host"
local testrules = require "testrules"
local testserver = require "testserver"

local CONFIGMAPS = testserver.CONFIGMAPS
local THINGS = "/apis/e.com/v1/namespaces/default/things"
local MIB = 1024 * 1024
local TOO_LARGE = "etcdserver: request is too large"
local WIDE = 70000 -- keys: more than all members of an object on the stack of Lua at once
local ANY = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true }


-- An object with so many keys.
local function wide(count, value)
  local object = {}
  for i = 1, count do
    object[("k%d"):format(i)] = value or ""
  end
  return object
end


local function nested(depth)
  return ('{"a":'):rep(depth) .. "{}" .. ("}"):rep(depth)
end


local function thing(name, spec)
  return { apiVersion = "e.com/v1", kind = "Thing", metadata = { name = name }, spec = spec }
end


describe("An object above 1.5 MiB", function()
  local server

  before_each(function()
    server = testrules.new(ANY)
    server:must("POST", THINGS, thing("small", {}))
  end)

  local large = { x = { text = ("x"):rep(1.6 * MIB // 1) } }
  local writes = {
    create = function() return server:call("POST", THINGS, thing("t", large)) end,
    update = function()
      local object = server:must("GET", THINGS .. "/small")
      object.spec = large
      return server:call("PUT", THINGS .. "/small", object)
    end,
    merge = function() return server:patch("merge", THINGS .. "/small", { spec = large }) end,
    apply = function() return server:patch("apply", THINGS .. "/t?fieldManager=m", thing("t", large)) end,
    json = function()
      return server:patch("json", THINGS .. "/small",
        host.json.array { { op = "add", path = "/spec", value = large } })
    end,
  }
  for verb, write in pairs(writes) do
    it("is refused as etcd refuses it: " .. verb, function()
      local code, answer = write()
      assert.same({ 500, TOO_LARGE, "Failure" }, { code, answer.message, answer.status })
      assert.is_nil(answer.reason)
      local left = server:must("GET", THINGS).items
      assert.same({ 1, {} }, { #left, left[1].spec })
    end)
  end

  it("is none when only its text is that long: etcd has built-in kinds as protobuf", function()
    server:must("POST", CONFIGMAPS, { metadata = { name = "c" }, data = { a = ("\1"):rep(480000) } })
    assert.equal(500, (server:call("POST", THINGS, thing("t", { x = { text = ("\1"):rep(480000) } }))))
  end)

  it("is refused before its defaults have made it", function()
    local item = { type = "object", properties = { a = { type = "string", default = ("x"):rep(5000) } } }
    server = testrules.new { type = "array", items = item }
    local list = host.json.array {}
    for i = 1, 20000 do
      list[i] = {}
    end
    local body = host.json.encode(thing("t", { x = list }))
    collectgarbage()
    local before = collectgarbage "count"
    collectgarbage "stop"
    local code, answer = server:call("POST", THINGS, body)
    local used = collectgarbage "count" - before
    collectgarbage "restart"
    assert.same({ 500, TOO_LARGE }, { code, answer.message })
    assert.is_true(used < 50 * 1024, ("%.0f KiB"):format(used)) -- 100 MB of defaults
  end)
end)


describe("An object that is wide or deep", function()
  local server

  before_each(function()
    server = testrules.new(ANY)
    server:must("POST", CONFIGMAPS, { metadata = { name = "small" } })
    server:must("POST", THINGS, thing("small", {}))
  end)

  local function judge(code, answer)
    assert.is_true(code < 500 or not answer.message:find("see the server's log", 1, true), answer.message)
  end

  local bodies = {
    ["keys of data"] = { data = wide(WIDE) },
    ["labels"] = { metadata = { labels = wide(WIDE, "v") } },
    ["unknown fields"] = wide(WIDE),
    ["a wide spec in a wide spec"] = { spec = { x = { a = wide(10), b = wide(WIDE) } } },
  }
  for what, fields in pairs(bodies) do
    it("is stored or refused: " .. what, function()
      for _, path in ipairs { CONFIGMAPS, THINGS } do
        local is_thing = path == THINGS
        local whole = {
          apiVersion = is_thing and "e.com/v1" or "v1", kind = is_thing and "Thing" or "ConfigMap",
          metadata = { name = "t", labels = fields.metadata and fields.metadata.labels },
        }
        for key, value in pairs(fields) do
          whole[key] = key == "metadata" and whole.metadata or value
        end
        judge(server:call("POST", path, whole))
        judge(server:patch("merge", path .. "/small", fields))
        if not is_thing then
          judge(server:patch("strategic", path .. "/small", fields))
        end
        judge(server:patch("apply", path .. "/t?fieldManager=m", whole))
        whole.metadata.name = "small"
        judge(server:call("PUT", path .. "/small", whole))
        judge(server:call("GET", path))
      end
    end)
  end

  for _, depth in ipairs { 200, 9000, 9999, 20000, 200000 } do
    it(("is stored or refused: %d levels"):format(depth), function()
      local spec = ('{"apiVersion":"e.com/v1","kind":"Thing","metadata":{"name":"t"},"spec":%s}'):format(nested(depth))
      local other = ('{"metadata":{"name":"t"},"x":%s}'):format(nested(depth))
      judge(server:call("POST", THINGS, spec))
      judge(server:patch("apply", THINGS .. "/t?fieldManager=m", spec))
      judge(server:patch("merge", THINGS .. "/small", ('{"spec":%s}'):format(nested(depth))))
      judge(server:call("POST", CONFIGMAPS, other))
      judge(server:patch("strategic", CONFIGMAPS .. "/small", other))
      judge(server:call("GET", THINGS))
    end)
  end
end)
