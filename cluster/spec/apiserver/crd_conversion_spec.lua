local host = require "cluster.host"
local hostlua = require "hostlua"
local testserver = require "testserver"
local testwebhooks = require "testwebhooks"

local CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
local V1 = "/apis/e.com/v1/namespaces/default/boxes"
local V2 = "/apis/e.com/v2/namespaces/default/boxes"
local FAILED = "conversion webhook for e.com/%s, Kind=Box "


local function version(name, is_stored, properties)
  return {
    name = name, served = true, storage = is_stored, subresources = { status = {}, scale = {
      specReplicasPath = ".spec.replicas", statusReplicasPath = ".status.replicas",
    } },
    schema = { openAPIV3Schema = { type = "object", properties = {
      spec = { type = "object", properties = properties },
      status = { type = "object", properties = { replicas = { type = "integer" } } },
    } } },
  }
end


-- v1 has its place in one text, v2 in two.
local function crd(stored)
  local text, count = { type = "string" }, { type = "integer" }
  return {
    metadata = { name = "boxes.e.com" },
    spec = {
      group = "e.com", scope = "Namespaced", names = { plural = "boxes", kind = "Box" },
      conversion = { strategy = "Webhook", webhook = {
        clientConfig = { url = "https://127.0.0.1:1/convert" }, conversionReviewVersions = host.json.array { "v1" },
      } },
      versions = host.json.array {
        version("v1", stored == "v1", { place = text, replicas = count }),
        version("v2", stored == "v2", { row = text, shelf = text, replicas = count, colour = {
          type = "string", default = "brown",
        } }),
      },
    },
  }
end


-- The webhook's conversion, unless a spec sets another.
local function convert(object, api_version)
  local spec = object.spec
  local replicas = spec.replicas
  if object.apiVersion == "e.com/v1" then
    local row, shelf = (spec.place or ""):match "^(.-)/(.*)$"
    object.spec = { row = row, shelf = shelf, replicas = replicas, unknown = "x" }
  else
    object.spec = { place = spec.row and spec.row .. "/" .. spec.shelf, replicas = replicas }
  end
  object.apiVersion = api_version
  return object
end


describe("a CRD with a conversion webhook", function()
  local server, asked, answer

  before_each(function()
    server, asked, answer = testserver.new(), {}, nil
    testwebhooks.install(function(request, url)
      asked[#asked + 1] = { to = request.desiredAPIVersion, count = #(request.objects or {}), url = url }
      if answer then
        local response, why = answer(request)
        if response or why then
          return response, why
        end
      end
      local list = host.json.array {}
      for i, object in ipairs(request.objects) do
        list[i] = convert(object, request.desiredAPIVersion)
      end
      return { result = { status = "Success" }, convertedObjects = list }
    end)
  end)

  after_each(testwebhooks.remove)

  local function serve(stored)
    server:must("POST", CRDS, crd(stored))
    hostlua.poll()
  end

  local function box(name, version_name, spec)
    return { apiVersion = "e.com/" .. version_name, kind = "Box", metadata = { name = name }, spec = spec }
  end

  local function store_version(stored)
    local object = server:must("GET", CRDS .. "/boxes.e.com")
    for _, one in ipairs(object.spec.versions) do
      one.storage = one.name == stored
    end
    server:must("PUT", CRDS .. "/boxes.e.com", object)
    hostlua.poll()
  end

  it("has it converted to the stored version, and back", function()
    serve "v1"
    local made = server:must("POST", V2, box("a", "v2", { row = "3", shelf = "top" }))
    assert.same({ row = "3", shelf = "top" }, made.spec)
    assert.equal("e.com/v2", made.apiVersion)
    assert.same({ place = "3/top" }, server:must("GET", V1 .. "/a").spec)
    assert.same({ { to = "e.com/v1", count = 1, url = "https://127.0.0.1:1/convert?timeout=30s" },
      { to = "e.com/v2", count = 1, url = "https://127.0.0.1:1/convert?timeout=30s" } }, asked)
    assert.same(made, server:must("GET", V2 .. "/a"))
    assert.equal(2, #asked, "what it said is remembered")
  end)

  it("asks nobody about the stored version", function()
    serve "v1"
    server:must("POST", V1, box("a", "v1", { place = "3/top" }))
    server:must("GET", V1)
    assert.equal(200, (server:patch("merge", V1 .. "/a", { spec = { place = "4/top" } })))
    server:must("DELETE", V1 .. "/a")
    assert.same({}, asked)
  end)

  it("is updated, patched, applied to and scaled in each version", function()
    serve "v1"
    server:must("POST", V1, box("a", "v1", { place = "3/top" }))
    local object = server:must("GET", V2 .. "/a")
    object.spec.shelf = "low"
    local replaced = server:must("PUT", V2 .. "/a", object)
    assert.same({ row = "3", shelf = "low" }, replaced.spec, "v1 has no colour: it is lost")
    assert.equal("3/low", server:must("GET", V1 .. "/a").spec.place)
    local _, patched = server:patch("merge", V2 .. "/a", { spec = { row = "5" } })
    assert.equal("5/low", server:must("GET", V1 .. "/a").spec.place)
    assert.equal(3, patched.metadata.generation)
    local code = server:patch("apply", V2 .. "/a?fieldManager=x&force=true",
      { apiVersion = "e.com/v2", kind = "Box", metadata = { name = "a" }, spec = { row = "6" } })
    assert.equal(200, code)
    server:patch("merge", V2 .. "/a/scale", { spec = { replicas = 7 } })
    server:patch("merge", V2 .. "/a/status", { status = { replicas = 2 } })
    assert.same({ place = "6/low", replicas = 7 }, server:must("GET", V1 .. "/a").spec)
    assert.same({ replicas = 2 }, server:must("GET", V1 .. "/a").status)
  end)

  it("lists what is stored in several versions, each in as few requests as may be", function()
    serve "v1"
    server:must("POST", V1, box("a", "v1", { place = "1/a" }))
    server:must("POST", V1, box("b", "v1", { place = "1/b" }))
    store_version "v2"
    server:must("POST", V2, box("c", "v2", { row = "1", shelf = "c" }))
    asked = {}
    local shelves, places = {}, {}
    for i, item in ipairs(server:must("GET", V2).items) do
      assert.equal("e.com/v2", item.apiVersion)
      shelves[i] = item.spec.shelf
    end
    for i, item in ipairs(server:must("GET", V1).items) do
      assert.equal("e.com/v1", item.apiVersion)
      places[i] = item.spec.place
    end
    assert.same({ "a", "b", "c" }, shelves)
    assert.same({ "1/a", "1/b", "1/c" }, places)
    assert.equal(2, #asked)
    assert.equal(2, asked[1].count)
    assert.equal(1, asked[2].count)
  end)

  it("is shown to watches of each version, in the order of the changes", function()
    serve "v1"
    server:must("POST", V1, box("a", "v1", { place = "1/a" }))
    local first = server:send("GET", V1 .. "?watch=true")
    local second = server:send("GET", V2 .. "?watch=true&resourceVersion=0&sendInitialEvents=true"
      .. "&resourceVersionMatch=NotOlderThan")
    server:patch("merge", V2 .. "/a", { spec = { shelf = "b" } })
    server:must("POST", V1, box("c", "v1", { place = "1/c" }))
    server:must("DELETE", V1 .. "/a")
    assert.same({ "ADDED a", "MODIFIED a", "ADDED c", "DELETED a" }, first:short())
    assert.same({ "ADDED a", "MODIFIED a", "ADDED c", "DELETED a" }, second:short())
    local shelves = {}
    for i, event in ipairs(second:events()) do
      assert.equal("e.com/v2", event.object.apiVersion)
      shelves[i] = event.object.spec.shelf
    end
    assert.same({ "a", "b", "c", "b" }, shelves)
  end)

  it("keeps events in their order when the webhook is slow, and tells nothing twice", function()
    serve "v1"
    local waiting, before = {}, server:must("GET", V2).metadata.resourceVersion
    local reply = server:send("GET", V2 .. "?watch=true")
    answer = function()
      waiting[#waiting + 1] = coroutine.running()
      coroutine.yield()
    end
    server:must("POST", V1, box("a", "v1", { place = "1/a" }))
    server:must("POST", V1, box("b", "v1", { place = "1/b" }))
    assert.same({}, reply:short())
    local late = testwebhooks.send(server, "GET", V2 .. "?watch=true&resourceVersion=" .. before)
    assert.equal(2, #waiting, "one for the queue, one for the late watch")
    answer = nil
    assert(coroutine.resume(waiting[1]))
    assert.same({ "ADDED a", "ADDED b" }, reply:short())
    late.go_on()
    assert.same({ "ADDED a", "ADDED b" }, late.reply:short())
    server:must("DELETE", V1 .. "/a")
    assert.same({ "ADDED a", "ADDED b", "DELETED a" }, late.reply:short())
  end)

  it("ends its watches when they cannot be told, and says why to who lists", function()
    serve "v1"
    local reply, other = server:send("GET", V2 .. "?watch=true"), server:send("GET", V1 .. "?watch=true")
    answer = function() return nil, "connection refused" end
    server:must("POST", V1, box("a", "v1", { place = "1/a" }))
    assert.is_true(reply.finished)
    assert.same({ "ADDED a" }, other:short())
    local code, status = server:call("GET", V2)
    assert.equal(500, code)
    assert.equal(FAILED:format "v1" .. 'failed: Post "https://127.0.0.1:1/convert?timeout=30s": '
      .. "dial tcp 127.0.0.1:1: connect: connection refused", status.message)
    answer = nil
    assert.same({ "a" }, testserver.names(server:must("GET", V2)))
  end)

  local function respond(change)
    return function(request)
      local object = convert(request.objects[1], request.desiredAPIVersion)
      local response = { result = { status = "Success" }, convertedObjects = host.json.array { object } }
      change(response, object)
      return response
    end
  end

  local WRONG = {
    { "another uid", 'failed: expected response.uid="', function(response) response.uid = "other" end },
    { "a failure", "failed: no boxes today", function(response)
      response.result = { status = "Failure", message = "no boxes today" }
    end },
    { "a failure without a word", "failed: response.result.status was 'Failure', not 'Success'", function(response)
      response.result = { status = "Failure" }
    end },
    { "too little", "returned 0 objects, expected 1", function(response)
      response.convertedObjects = host.json.array {}
    end },
    { "the version that it has", "returned invalid object at index 0: invalid groupVersion (expected e.com/v2, "
      .. "received e.com/v1)", function(_, object) object.apiVersion = "e.com/v1" end },
    { "another kind", "returned invalid object at index 0: invalid kind (expected Box, received Bag)",
      function(_, object) object.kind = "Bag" end },
    { "another name", "returned invalid object: must have the same name: a != b",
      function(_, object) object.metadata.name = "b" end },
    { "another uid of the object", "returned invalid object: must have the same UID: ",
      function(_, object) object.metadata.uid = "x" end },
    { "bad labels", 'returned invalid metadata: metadata.labels: Invalid value: "a b": ',
      function(_, object) object.metadata.labels = { ["a b"] = "c" } end },
    { "labels of another type", "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in "
      .. "converted object", function(_, object) object.metadata.labels = { a = 1 } end },
  }

  for _, case in ipairs(WRONG) do
    local name, message, change = table.unpack(case)
    it("is not shown when the webhook answers with " .. name, function()
      serve "v1"
      server:must("POST", V1, box("a", "v1", { place = "1/a" }))
      answer = respond(change)
      local code, status = server:call("GET", V2 .. "/a")
      assert.equal(500, code)
      assert.equal(FAILED:format "v1" .. message, status.message:sub(1, #FAILED:format "v1" + #message))
      assert.equal(500, (server:call("GET", V2)))
      assert.equal(200, (server:call("GET", V1 .. "/a")))
    end)
  end

  it("is not shown when the webhook answers with nothing", function()
    serve "v1"
    server:must("POST", V1, box("a", "v1", { place = "1/a" }))
    package.loaded["cluster.http"] = { client = function()
      return { post = function()
        return 200, "application/json", '{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"}'
      end }
    end }
    server:must("PUT", CRDS .. "/boxes.e.com", (function()
      local object = server:must("GET", CRDS .. "/boxes.e.com")
      object.spec.conversion.webhook.clientConfig.url = "https://127.0.0.1:1/other" -- another client
      return object
    end)())
    hostlua.poll()
    local _, status = server:call("GET", V2 .. "/a")
    assert.equal(FAILED:format "v1" .. "failed: no response provided", status.message)
  end)

  it("is selected by the fields of the version that is asked for", function()
    local object = crd "v1"
    for _, one in ipairs(object.spec.versions) do
      one.selectableFields = { { jsonPath = one.name == "v1" and ".spec.place" or ".spec.row" } }
    end
    server:must("POST", CRDS, object)
    hostlua.poll()
    local reply = server:send("GET", V2 .. "?watch=true&fieldSelector=spec.row%3D3")
    for name, place in pairs { a = "3/top", b = "3/low", c = "4/top" } do
      server:must("POST", V1, box(name, "v1", { place = place }))
    end
    local function names(path)
      local list = {}
      for i, item in ipairs(server:must("GET", path).items) do
        list[i] = item.metadata.name
      end
      return table.concat(list, " ")
    end
    assert.equal("a b", names(V2 .. "?fieldSelector=spec.row%3D3"))
    assert.equal("c", names(V2 .. "?fieldSelector=spec.row!%3D3"))
    assert.equal("b", names(V1 .. "?fieldSelector=spec.place%3D3/low"))
    assert.equal(400, (server:call("GET", V1 .. "?fieldSelector=spec.row%3D3")))
    server:must("DELETE", V2 .. "?fieldSelector=spec.row%3D4")
    server:patch("merge", V1 .. "/b", { spec = { place = "5/low" } })
    assert.equal("a b", names(V1))
    local told = reply:short()
    table.sort(told)
    assert.same({ "ADDED a", "ADDED b", "DELETED b" }, told)
  end)

  it("asks nobody when the last watch of a version has ended", function()
    serve "v1"
    local reply = server:send("GET", V2 .. "?watch=true&timeoutSeconds=5")
    server:must("POST", V1, box("a", "v1", { place = "1/a" }))
    assert.equal(1, #asked)
    testserver.pass(nil, 6)
    assert.is_true(reply.finished)
    server:must("POST", V1, box("b", "v1", { place = "1/b" }))
    assert.equal(1, #asked)
  end)

  it("keeps metadata as it is, but labels and annotations", function()
    serve "v1"
    local made = server:must("POST", V1, box("a", "v1", { place = "1/a" }))
    answer = respond(function(_, object)
      object.metadata.labels, object.metadata.annotations = { l = "1" }, { a = "2" }
      object.metadata.creationTimestamp, object.metadata.finalizers = nil, host.json.array { "e.com/x" }
    end)
    local meta = server:must("GET", V2 .. "/a").metadata
    assert.same({ l = "1" }, meta.labels)
    assert.same({ a = "2" }, meta.annotations)
    meta.labels, meta.annotations = nil, nil
    assert.same(made.metadata, meta)
  end)

  it("stores nothing when the webhook fails at a write, and tells why", function()
    serve "v1"
    answer = function() return nil, "connection refused" end
    local code, status = server:call("POST", V2, box("a", "v2", { row = "1", shelf = "a" }))
    assert.equal(500, code)
    assert.matches("^conversion webhook for e.com/v2, Kind=Box failed: Post ", status.message)
    assert.equal(404, (server:call("GET", V1 .. "/a")))
  end)

  it("does not overwrite what came while the webhook was asked", function()
    serve "v1"
    server:must("POST", V1, box("a", "v1", { place = "1/a" }))
    server:must("GET", V2 .. "/a")
    answer = function() coroutine.yield() end
    local sent = testwebhooks.send(server, "PATCH", V2 .. "/a", { spec = { row = "2" } },
      { ["content-type"] = "application/merge-patch+json" })
    server:patch("merge", V1 .. "/a", { spec = { place = "1/z" } })
    while not sent.reply do
      sent.go_on()
    end
    assert.equal(200, sent.reply.code)
    answer = nil
    assert.equal("2/z", server:must("GET", V1 .. "/a").spec.place)
  end)

  it("is deleted with its objects, whatever version they are stored in", function()
    serve "v1"
    server:must("POST", V1, box("a", "v1", { place = "1/a" }))
    store_version "v2"
    server:must("DELETE", CRDS .. "/boxes.e.com")
    hostlua.poll()
    assert.equal(404, (server:call("GET", CRDS .. "/boxes.e.com")))
    assert.is_nil(server.server.store:get("boxes.e.com", "default", "a"))
  end)

  it("knows after a restart in which version each object is", function()
    serve "v1"
    server:must("POST", V1, box("a", "v1", { place = "1/a" }))
    store_version "v2"
    local records, revision = server.server.store:dump()
    server = testserver.new { restored_state = { records = records, revision = revision } }
    assert.equal("1/a", server:must("GET", V1 .. "/a").spec.place)
    assert.equal("a", server:must("GET", V2 .. "/a").spec.shelf)
  end)

  it("asks webhooks of admission about the version they know", function()
    serve "v1"
    server:must("POST", V1, box("a", "v1", { place = "1/a" }))
    testwebhooks.configure(server, "validating", {
      rules = { { apiGroups = { "e.com" }, apiVersions = { "v2" }, operations = { "UPDATE" },
        resources = { "boxes" } } },
    })
    local seen
    answer = function(request)
      if request.operation then
        seen = request.object
        return { allowed = true }
      end
    end
    assert.equal(200, (server:patch("merge", V1 .. "/a", { spec = { place = "2/b" } })))
    assert.same({ row = "2", shelf = "b" }, seen.spec)
    answer = function(request)
      if not request.operation then
        return nil, "connection refused"
      end
    end
    local code, status = server:patch("merge", V1 .. "/a", { spec = { place = "3/b" } })
    assert.equal(500, code)
    assert.matches("^Internal error occurred: conversion webhook for e.com/v1, Kind=Box failed: ", status.message)
    assert.equal("2/b", server:must("GET", V1 .. "/a").spec.place)
  end)
end)


describe("the conversion of a CRD", function()
  local server
  before_each(function() server = testserver.new() end)

  local function refused(conversion, ...)
    local made = crd "v1"
    made.spec.conversion = conversion
    local code, status = server:call("POST", CRDS, made)
    assert.equal(422, code)
    local causes = {}
    for i, cause in ipairs(status.details.causes) do
      causes[i] = cause.field .. ": " .. cause.message
    end
    assert.same({ ... }, causes)
  end

  local AT = "spec.conversion."

  it("says who converts, and how", function()
    refused({ strategy = "Webhook" }, AT .. "webhookClientConfig: Required value: required when strategy is set to "
      .. "Webhook", AT .. "conversionReviewVersions: Required value")
    refused({ strategy = "Webhook", webhook = { clientConfig = {},
        conversionReviewVersions = host.json.array { "v3" } } },
      AT .. "webhookClientConfig: Required value: exactly one of url or service is required",
      AT .. 'conversionReviewVersions: Invalid value: ["v3"]: must include at least one of v1, v1beta1')
    refused({ strategy = "Webhook", webhook = { clientConfig = { url = "http://a/b" },
        conversionReviewVersions = host.json.array { "v1", "v1" } } },
      AT .. "webhookClientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired "
        .. "format: https://host[/path]",
      AT .. 'conversionReviewVersions[1]: Invalid value: "v1": duplicate version')
  end)
end)
