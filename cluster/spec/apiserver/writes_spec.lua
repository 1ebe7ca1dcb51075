local testserver = require "testserver"

local PATH = testserver.CONFIGMAPS


describe("writing objects", function()
  local world
  before_each(function() world = testserver.new() end)

  it("tells unknown fields of YAML, without a search for JSON in it, which had no end", function()
    local code, answer = world:call("POST", PATH .. "?fieldValidation=Strict",
      '{"metadata":{"name":"a"},"more":[{^a":"b"}],"less":1}', { ["content-type"] = "application/yaml" })
    assert.equal(400, code)
    assert.matches('unknown field "less", unknown field "more"', answer.message)
  end)

  it("creates with what only the server sets", function()
    local code, made = world:call("POST", PATH, {
      metadata = { name = "a", uid = "mine", creationTimestamp = "2020-01-01T00:00:00Z" }, data = { k = "v" },
    })
    assert.equal(201, code)
    assert.equal("ConfigMap", made.kind)
    assert.equal("default", made.metadata.namespace)
    assert.not_equal("mine", made.metadata.uid)
    assert.equal("2026-01-01T00:00:00Z", made.metadata.creationTimestamp)
    assert.same(made, world:must("GET", PATH .. "/a"))
  end)

  it("makes names", function()
    local made = world:must("POST", PATH, { metadata = { generateName = "a-" } })
    assert.matches("^a%-%w%w%w%w%w$", made.metadata.name)
  end)

  for _, case in ipairs {
    { "a taken name", 409, "AlreadyExists", { metadata = { name = "kube-root-ca.crt" } } },
    { "no name", 422, "Invalid", { metadata = {} } },
    { "a bad name", 422, "Invalid", { metadata = { name = "A" } } },
    { "another namespace", 400, "BadRequest", { metadata = { name = "a", namespace = "b" } } },
    { "another kind", 400, "BadRequest", { kind = "Secret", metadata = { name = "a" } } },
    { "another version", 400, "BadRequest", { apiVersion = "v2", metadata = { name = "a" } } },
    { "a resourceVersion", 500, nil, { metadata = { name = "a", resourceVersion = "1" } } },
    { "no JSON", 400, "BadRequest", "{" },
    { "a list", 400, "BadRequest", "[]" },
  } do
    it("refuses " .. case[1], function()
      local code, answer = world:call("POST", PATH, case[4])
      assert.equal(case[2], code)
      assert.equal(case[3], answer.reason)
    end)
  end

  it("refuses what is too large", function()
    local code, answer = world:call("POST", PATH, ("x"):rep(3 * 1024 * 1024 + 1))
    assert.equal(413, code)
    assert.equal("RequestEntityTooLarge", answer.reason)
  end)

  it("replaces only what the client has seen", function()
    local made = world:configmap("a", { data = { k = "1" } })
    made.data.k = "2"
    local second = world:must("PUT", PATH .. "/a", made)
    assert.equal(made.metadata.uid, second.metadata.uid)
    assert.not_equal(made.metadata.resourceVersion, second.metadata.resourceVersion)
    local code, answer = world:call("PUT", PATH .. "/a", made)
    assert.equal(409, code)
    assert.equal("Conflict", answer.reason)
    made.metadata.resourceVersion, made.metadata.uid = nil, nil
    assert.equal(200, (world:call("PUT", PATH .. "/a", made)))
    made.metadata.uid = "other"
    assert.equal(409, (world:call("PUT", PATH .. "/a", made)))
  end)

  it("writes nothing when nothing changes", function()
    local made = world:configmap "a"
    assert.same(made, world:must("PUT", PATH .. "/a", made))
  end)

  for _, case in ipairs {
    { "merge", { data = { k = "2" } } },
    { "strategic", { data = { k = "2" } } },
    { "json", '[{"op":"replace","path":"/data/k","value":"2"}]' },
  } do
    it("takes a patch: " .. case[1], function()
      world:configmap("a", { data = { k = "1", l = "1" } })
      local code, answer = world:patch(case[1], PATH .. "/a", case[2])
      assert.equal(200, code)
      assert.same({ k = "2", l = "1" }, answer.data)
      assert.equal(404, (world:patch(case[1], PATH .. "/b", case[2])))
    end)
  end

  it("refuses patches of no kind, and those that do not fit", function()
    world:configmap "a"
    assert.equal(415, (world:call("PATCH", PATH .. "/a", "{}", { ["content-type"] = "application/json" })))
    assert.equal(400, (world:patch("merge", PATH .. "/a", "{")))
    assert.equal(409, (world:patch("merge", PATH .. "/a", { metadata = { resourceVersion = "1" } })))
    assert.equal(400, (world:patch("merge", PATH .. "/a", { metadata = { name = "b" } })))
    local code, answer = world:patch("merge", PATH .. "/a", { kind = "Strange" })
    assert.equal(422, code)
    assert.equal("patch", answer.details.causes[1].field)
  end)

  describe("with a dry run", function()
    it("creates nothing", function()
      local code, answer = world:call("POST", PATH .. "?dryRun=All", { metadata = { name = "a" } })
      assert.equal(201, code)
      assert.is_nil(answer.metadata.resourceVersion)
      assert.equal(404, (world:call("GET", PATH .. "/a")))
    end)

    it("changes and deletes nothing", function()
      local made = world:configmap("a", { data = { k = "1" } })
      local code, answer = world:patch("merge", PATH .. "/a?dryRun=All", { data = { k = "2" } })
      assert.equal(200, code)
      assert.equal("2", answer.data.k)
      assert.equal(200, (world:call("DELETE", PATH .. "/a?dryRun=All")))
      assert.same(made, world:must("GET", PATH .. "/a"))
    end)

    it("takes no other word", function()
      assert.equal(422, (world:call("POST", PATH .. "?dryRun=Some", { metadata = { name = "a" } })))
    end)
  end)

  describe("with fields that the kind does not know", function()
    local BODY = '{"metadata":{"name":"a","name":"a","odd":1},"data":{"k":"v"},"strange":true}'

    it("warns", function()
      local code, answer, reply = world:call("POST", PATH, BODY)
      assert.equal(201, code)
      assert.is_nil(answer.strange)
      assert.equal('299 - "duplicate field \\"metadata.name\\"", 299 - "unknown field \\"metadata.odd\\"", '
        .. '299 - "unknown field \\"strange\\""', reply.headers.Warning)
    end)

    it("refuses when strict", function()
      local code, answer = world:call("POST", PATH .. "?fieldValidation=Strict", BODY)
      assert.equal(400, code)
      assert.equal('ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: duplicate field '
        .. '"metadata.name", unknown field "metadata.odd", unknown field "strange"', answer.message)
    end)

    it("says nothing when told so", function()
      local code, _, reply = world:call("POST", PATH .. "?fieldValidation=Ignore", BODY)
      assert.equal(201, code)
      assert.is_nil(reply.headers.Warning)
    end)
  end)

  it("scales", function()
    local path = "/apis/apps/v1/namespaces/default/deployments"
    local labels = { app = "a" }
    world:must("POST", path, { metadata = { name = "a" }, spec = { replicas = 1, selector = { matchLabels = labels },
      template = { metadata = { labels = labels }, spec = { containers = { { name = "c", image = "i" } } } } } })
    local scale = world:must("GET", path .. "/a/scale")
    assert.equal("Scale", scale.kind)
    assert.same({ replicas = 1 }, scale.spec)
    assert.equal("app=a", scale.status.selector)
    scale.spec.replicas = 3
    assert.equal(3, world:must("PUT", path .. "/a/scale", scale).spec.replicas)
    assert.equal(3, world:must("GET", path .. "/a").spec.replicas)
    assert.equal(409, (world:call("PUT", path .. "/a/scale", scale)))
    assert.equal(422, (world:patch("merge", path .. "/a/scale", { spec = { replicas = -1 } })))
    assert.equal(200, (world:patch("merge", path .. "/a/scale", { spec = { replicas = 0 } })))
    assert.equal(0, world:must("GET", path .. "/a").spec.replicas)
  end)
end)
