-- A request about many objects lets others have their turn, and has a bound where it does not.
local host = require "cluster.host"
local testrules = require "testrules"
local testserver = require "testserver"

local CONFIGMAPS = testserver.CONFIGMAPS
local THINGS = "/apis/e.com/v1/namespaces/default/things"
local MANY = 20
local TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
local METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
local MANY_ERRORS = 5000


local function list_of(count, item)
  local list = host.json.array {}
  for i = 1, count do
    list[i] = item
  end
  return list
end


-- An object with so many keys.
local function wide(count)
  local object = {}
  for i = 1, count do
    object["k" .. i] = i
  end
  return object
end


local function thing(spec)
  return { apiVersion = "e.com/v1", kind = "Thing", metadata = { name = "t" }, spec = spec }
end


describe("While a client is answered about many objects, others are served:", function()
  local server
  local give_way = host.give_way

  before_each(function()
    server = testserver.new()
    for i = 1, MANY do
      server:configmap(("c%02d"):format(i), { metadata = { labels = { which = "many" } } })
    end
  end)
  after_each(function() host.give_way = give_way end)

  -- Sends a request from a connection. Each time that the server gives way, an object is made. Returns the answer and
  -- the number of objects made.
  local function send(method, accept, path)
    local made, is_making = 0, false
    host.give_way = function()
      if not is_making then
        is_making, made = true, made + 1
        server:configmap(("other-%d"):format(made))
        is_making = false
      end
    end
    local reply = {}
    function reply:send(code, _, body)
      self.code, self.body = code, body
    end
    server.server:handle({
      method = method, path = path or CONFIGMAPS, query = "labelSelector=which%3Dmany",
      headers = { accept = accept }, body = "", client = "127.0.0.1",
    }, reply)
    host.give_way = give_way
    return reply, made
  end

  for what, accept in pairs {
    JSON = "application/json", YAML = "application/yaml", ["a table"] = TABLE, metadata = METADATA,
  } do
    it("a list as " .. what, function()
      local reply, made = send("GET", accept)
      assert.equal(200, reply.code)
      assert.is_true(made >= (accept == "application/json" and MANY or 2 * MANY), made)
      assert.equal(MANY, select(2, reply.body:gsub('name"?: ?"?c%d%d', "")))
      assert.is_nil(reply.body:find("other-", 1, true))
      assert.equal(200, (server:call("GET", CONFIGMAPS .. "/other-1")))
    end)
  end

  it("a collection that is deleted", function()
    local reply, made = send("DELETE")
    assert.equal(200, reply.code)
    assert.is_true(made >= 2 * MANY, made)
    local left = server:must("GET", CONFIGMAPS .. "?labelSelector=which%3Dmany")
    assert.same({}, left.items)
    assert.equal(200, (server:call("GET", CONFIGMAPS .. "/other-1")))
  end)

  it("not while a change is told to those who watch", function()
    local gave_way, chunks = 0, {}
    host.give_way = function() gave_way = gave_way + 1 end
    local reply = { start = function() end, write = function(_, chunk) chunks[#chunks + 1] = chunk return 0 end }
    server.server:handle({
      method = "GET", path = CONFIGMAPS, query = "watch=true", headers = { accept = TABLE }, body = "",
      client = "127.0.0.1",
    }, reply)
    server:configmap "new"
    assert.matches('"type":"ADDED".*"name":"new"', table.concat(chunks))
    assert.equal(0, gave_way)
    reply.on_close()
  end)
end)


describe("What is wrong with an object many times over is looked for until it is enough:", function()
  it("values of a wrong type", function()
    local validate = require "cluster.apiserver.schema.validate"
    local schema = { type = "object", properties = { list = { type = "array", items = { type = "string" } } } }
    local errors = validate(schema, { list = list_of(MANY_ERRORS, 1) })
    assert.is_true(#errors >= 1000 and #errors < MANY_ERRORS, #errors)
    schema = { type = "object", additionalProperties = { type = "string" } }
    errors = validate(schema, wide(MANY_ERRORS))
    assert.is_true(#errors >= 1000 and #errors < MANY_ERRORS, #errors)
  end)

  it("unknown fields", function()
    local server = testrules.new { type = "object" }
    local code, answer = server:call("POST", THINGS .. "?fieldValidation=Strict", thing(wide(MANY_ERRORS)))
    assert.equal(400, code)
    assert.equal(1000, select(2, answer.message:gsub("unknown field", "")))
  end)

  it("what an apply cannot merge", function()
    local server = testrules.new { type = "object", additionalProperties = { type = "string" } }
    local applied = thing { x = wide(MANY_ERRORS) }
    local code, answer = server:patch("apply", THINGS .. "/t?fieldManager=m", applied)
    assert.equal(500, code)
    assert.equal(1000, select(2, answer.message:gsub("expected string", "")))
  end)
end)


it("An object that is too large to be stored is refused before its fields are checked", function()
  local server = testrules.new { type = "array", items = { type = "string" } }
  local large = thing { x = host.json.array { ("x"):rep(1.6 * 1024 * 1024 // 1), 1 } }
  local code, answer = server:call("POST", THINGS, large)
  assert.same({ 500, "etcdserver: request is too large" }, { code, answer.message })
end)


-- Instructions of Lua, in thousands.
local function work_of(fn, ...)
  local count = 0
  debug.sethook(function() count = count + 1 end, "", 1000)
  fn(...)
  debug.sethook()
  return count
end


describe("The work for a list grows with its length, not with the square of it:", function()
  local function numbered(count, item)
    local list = host.json.array {}
    for i = 1, count do
      list[i] = item(i)
    end
    return list
  end

  -- `prepare` returns the function to be measured, for a list of so many items.
  local function check(prepare)
    local one, four = work_of(prepare(500)), work_of(prepare(2000))
    assert.is_true(four < 6 * one, ("%d, then %d"):format(one, four))
  end

  local function template(count, value)
    local env = numbered(count, function(i) return { name = "E" .. i, value = value } end)
    return { template = { spec = { containers = host.json.array { { name = "c", image = "i", env = env } } } } }
  end

  it("a strategic merge by key", function()
    local strategic = require "cluster.apiserver.patch.strategic"
    local schema = require("cluster.apiserver.schema.builtin").of("apps", "v1", "Deployment")
    for _, make in pairs {
      same = function(count) return template(count, "w") end,
      deleted = function(count)
        local patch = template(count)
        for _, item in ipairs(patch.template.spec.containers[1].env) do
          item["$patch"] = "delete"
        end
        return patch
      end,
      backwards = function(count)
        local patch = template(count, "w")
        local container = patch.template.spec.containers[1]
        container["$setElementOrder/env"] = numbered(count, function(i) return { name = "E" .. count + 1 - i } end)
        container.env = host.json.array {}
        return patch
      end,
    } do
      check(function(count)
        local object, patch = { kind = "Deployment", spec = template(count, "v") }, { spec = make(count) }
        return function() assert(strategic(object, patch, schema)) end
      end)
    end
  end)

  it("a strategic merge of values", function()
    local strategic = require "cluster.apiserver.patch.strategic"
    local schema = require("cluster.apiserver.schema.builtin").of("", "v1", "ConfigMap")
    check(function(count)
      local list = numbered(count, function(i) return "e.com/" .. i end)
      return function()
        assert(strategic({ kind = "ConfigMap", metadata = { finalizers = list } }, { metadata = { finalizers = list } },
          schema))
      end
    end)
  end)

  it("an update of a list with keys, one item of which was wrong and stays", function()
    local validate = require "cluster.apiserver.schema.validate"
    local item = { type = "object", properties = { name = { type = "string" }, size = { type = "integer" } } }
    local schema = { type = "array", items = item, ["x-kubernetes-list-type"] = "map",
      ["x-kubernetes-list-map-keys"] = { "name" } }
    check(function(count)
      local list = numbered(count, function(i) return { name = "n" .. i, size = i } end)
      list[1].size = "wrong"
      local old = host.json.copy(list)
      list[2].size = 0
      return function() assert.same({}, validate(schema, list, { old = old })) end
    end)
  end)
end)
