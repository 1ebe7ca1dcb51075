local testserver = require "testserver"

local PATH = "/api/v1/namespaces/work/configmaps"


describe("lists", function()
  local world
  before_each(function()
    world = testserver.new { accounts = false }
    world:must("POST", "/api/v1/namespaces", { metadata = { name = "work" } })
    for i, labels in ipairs { { t = "web", x = "1" }, { t = "web", x = "2" }, { x = "3" } } do
      world:must("POST", PATH, { metadata = { name = "c" .. i, labels = labels } })
    end
  end)

  for query, want in pairs {
    [""] = { "c1", "c2", "c3" }, ["labelSelector=t%3Dweb"] = { "c1", "c2" },
    ["labelSelector=x%20in%20(1,3)"] = { "c1", "c3" },
    ["fieldSelector=metadata.name!%3Dc2"] = { "c1", "c3" }, ["labelSelector=!t"] = { "c3" },
    ["fieldSelector=metadata.name%3Dc2&labelSelector=t"] = { "c2" },
    ["limit=2&resourceVersion=0"] = { "c1", "c2", "c3" },
  } do
    it("select: " .. query, function()
      assert.same(want, testserver.names(world:must("GET", PATH .. "?" .. query)))
    end)
  end

  it("come in pages of one moment", function()
    local first = world:must("GET", PATH .. "?limit=2")
    assert.same({ "c1", "c2" }, testserver.names(first))
    assert.equal(1, first.metadata.remainingItemCount)
    world:must("POST", PATH, { metadata = { name = "c4" } })
    world:must("DELETE", PATH .. "/c3")
    local second = world:must("GET", PATH .. "?limit=2&continue=" .. first.metadata.continue)
    assert.same({ "c3" }, testserver.names(second))
    assert.equal(first.metadata.resourceVersion, second.metadata.resourceVersion)
    assert.is_nil(second.metadata.continue)
  end)

  it("say when a page is too old, and how to go on", function()
    local first = world:must("GET", PATH .. "?limit=2")
    world:must("DELETE", PATH .. "/c1")
    world.server.store:compact(world.server.store.revision)
    local code, answer = world:call("GET", PATH .. "?limit=2&continue=" .. first.metadata.continue)
    assert.equal(410, code)
    assert.equal("Expired", answer.reason)
    local rest = world:must("GET", PATH .. "?limit=2&continue=" .. answer.metadata.continue)
    assert.same({ "c3" }, testserver.names(rest))
  end)

  -- Writes once a minute, as somebody always does.
  local function pass_writing(seconds)
    for _ = 1, seconds, 60 do
      world:pass(60)
      world:must("PUT", "/api/v1/namespaces/default/configmaps/other?fieldManager=x", { metadata = { name = "other" },
        data = { now = tostring(world.server.store.revision) } })
    end
  end

  it("have pages for five minutes, and go on in the present after that", function()
    world:must("POST", "/api/v1/namespaces/default/configmaps", { metadata = { name = "other" } })
    local first = world:must("GET", PATH .. "?limit=2")
    pass_writing(300)
    world:must("POST", PATH, { metadata = { name = "c4" } })
    local token = PATH .. "?limit=1&continue=" .. first.metadata.continue
    assert.same({ "c3" }, testserver.names(world:must("GET", token)))
    pass_writing(120)
    local code, answer = world:call("GET", token)
    assert.same({ 410, "Expired" }, { code, answer.reason })
    local rest = world:must("GET", PATH .. "?limit=1&continue=" .. answer.metadata.continue)
    assert.same({ "c3" }, testserver.names(rest))
    assert.is_true(tonumber(rest.metadata.resourceVersion) > tonumber(first.metadata.resourceVersion))
    assert.same({ "c4" }, testserver.names(world:must("GET", PATH .. "?limit=1&continue=" .. rest.metadata.continue)))
  end)

  it("have pages for as long as nothing changes", function()
    local first = world:must("GET", PATH .. "?limit=2")
    world:pass(3600)
    assert.same({ "c3" }, testserver.names(world:must("GET", PATH .. "?limit=2&continue=" .. first.metadata.continue)))
    world:must("DELETE", PATH .. "/c1")
    assert.equal(200, (world:call("GET", PATH .. "?limit=2&continue=" .. first.metadata.continue)))
    world:pass(600)
    assert.equal(410, (world:call("GET", PATH .. "?limit=2&continue=" .. first.metadata.continue)))
  end)

  it("are had of an exact revision for as long, and watches from one for longer", function()
    world:must("POST", "/api/v1/namespaces/default/configmaps", { metadata = { name = "other" } })
    local revision = world:must("GET", PATH).metadata.resourceVersion
    world:must("DELETE", PATH .. "/c1")
    local exact = PATH .. "?resourceVersionMatch=Exact&resourceVersion=" .. revision
    pass_writing(300)
    assert.same({ "c1", "c2", "c3" }, testserver.names(world:must("GET", exact)))
    pass_writing(120)
    local code, answer = world:call("GET", exact)
    assert.same({ 410, "The resourceVersion for the provided list is too old." }, { code, answer.message })
    local watch = world:send("GET", PATH .. "?watch=true&resourceVersion=" .. revision)
    assert.same({ "DELETED c1" }, watch:short())
  end)

  it("can be of an exact revision", function()
    local revision = world:must("GET", PATH).metadata.resourceVersion
    world:must("DELETE", PATH .. "/c1")
    local past = world:must("GET", PATH .. "?resourceVersionMatch=Exact&resourceVersion=" .. revision)
    assert.same({ "c1", "c2", "c3" }, testserver.names(past))
    assert.equal(410, (world:call("GET", PATH .. "?resourceVersionMatch=Exact&resourceVersion=1")))
  end)

  for query, code in pairs {
    ["limit=x"] = 400, ["continue=garbage"] = 400, ["labelSelector=a%20b"] = 400, ["fieldSelector=data.x%3D1"] = 400,
    ["resourceVersion=word"] = 400, ["resourceVersion=999999"] = 504, ["resourceVersionMatch=Exact"] = 422,
    ["sendInitialEvents=true"] = 422, ["limit=-1"] = 200,
  } do
    it(("answer %d to %s"):format(code, query), function()
      assert.equal(code, (world:call("GET", PATH .. "?" .. query)))
    end)
  end

  it("are shown as a table or as metadata only", function()
    local form = "application/json;as=%s;v=v1;g=meta.k8s.io"
    local rows = world:must("GET", PATH, nil, { accept = form:format "Table" })
    assert.equal("Table", rows.kind)
    assert.equal("c1", rows.rows[1].cells[1])
    local partial = world:must("GET", PATH, nil, { accept = form:format "PartialObjectMetadataList" })
    assert.equal("PartialObjectMetadata", partial.items[1].kind)
    local one = world:must("GET", PATH .. "/c1", nil, { accept = form:format "PartialObjectMetadata" })
    assert.same({ t = "web", x = "1" }, one.metadata.labels)
    assert.equal(406, (world:call("GET", PATH .. "/c1", nil, { accept = form:format "PartialObjectMetadataList" })))
    assert.equal(406, (world:call("GET", PATH, nil, { accept = form:format "Strange" })))
  end)

  it("refuse what is not made", function()
    local code, answer = world:call("GET", PATH, nil, { accept = "application/vnd.kubernetes.protobuf" })
    assert.equal(501, code)
    assert.matches("protobuf", answer.message)
    assert.equal(406, (world:call("GET", PATH, nil, { accept = "text/html" })))
  end)
end)


describe("other paths", function()
  local world
  setup(function() world = testserver.new() end)

  for line, code in pairs {
    ["GET /healthz"] = 200, ["GET /livez"] = 200, ["GET /readyz?verbose"] = 200, ["GET /livez/ping"] = 200,
    ["GET /livez/strange"] = 404, ["GET /version"] = 200, ["POST /version"] = 405, ["GET /strange"] = 404,
    ["GET /metrics"] = 501, ["GET /api/v1/strange"] = 404, ["GET /apis/strange/v1/things"] = 404,
    ["GET /api/v1/configmaps/a"] = 404, ["POST /api/v1/configmaps"] = 405, ["DELETE /api/v1/configmaps"] = 405,
    ["POST /api/v1/namespaces/default/configmaps/a"] = 405, ["PUT /api/v1/namespaces/default/configmaps"] = 405,
    ["GET /api/v1/namespaces/default/nodes"] = 404, ["GET /api/v1/namespaces/default/pods/a/strange"] = 404,
    ["GET /api/v1/namespaces/default/configmaps/a/status"] = 404,
    ["GET /api/v1/namespaces/default/configmaps/.."] = 400,
    ["GET /apis/admissionregistration.k8s.io/v1/strange"] = 404,
    ["GET /api/v1/namespaces/default/pods/a/exec"] = 404,
    ["HEAD /api/v1/namespaces/default"] = 405,
  } do
    it(("%s is %d"):format(line, code), function()
      local method, path = line:match("^(%S+) (.*)$")
      assert.equal(code, world:send(method, path).code)
    end)
  end

  it("tell of health at length", function()
    local _, text = world:call("GET", "/livez?verbose&exclude=etcd&exclude=strange")
    assert.equal('[+]ping ok\n[+]log ok\n[+]etcd excluded: ok\nwarn: some health checks cannot be excluded: no '
      .. 'matches for "strange"\nlivez check passed\n', text)
  end)
end)
