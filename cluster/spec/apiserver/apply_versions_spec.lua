-- Owners in other versions than that of a write.
local host = require "cluster.host"
local hostlua = require "hostlua"
local testserver = require "testserver"
local testwebhooks = require "testwebhooks"

local CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
local BOXES = "/apis/e.com/%s/namespaces/default/boxes/a?fieldManager=%s"


local function version(name, is_stored, properties)
  return { name = name, served = true, storage = is_stored, schema = { openAPIV3Schema = { type = "object",
    properties = { spec = { type = "object", properties = properties } } } } }
end


-- v1 has its place in one text, v2 in two.
local function crd(conversion)
  local text, count = { type = "string" }, { type = "integer" }
  return { metadata = { name = "boxes.e.com" }, spec = {
    group = "e.com", scope = "Namespaced", names = { plural = "boxes", kind = "Box" }, conversion = conversion,
    versions = host.json.array { version("v1", true, { place = text, count = count }),
      version("v2", false, { row = text, shelf = text, count = count }) },
  } }
end


local function convert(object, api_version)
  local spec = object.spec or {}
  if object.apiVersion == "e.com/v1" then
    local row, shelf = (spec.place or ""):match "^(.-)/(.*)$"
    object.spec = { row = row, shelf = shelf, count = spec.count }
  else
    object.spec = { place = spec.row and spec.row .. "/" .. (spec.shelf or ""), count = spec.count }
  end
  object.apiVersion = api_version
  return object
end


describe("server-side apply, with owners in several versions,", function()
  local server, asked, is_broken

  before_each(function()
    server, asked, is_broken = testserver.new(), 0, false
    testwebhooks.install(function(request)
      asked = asked + 1
      if is_broken then
        return nil, "broken"
      end
      local list = host.json.array {}
      for i, object in ipairs(request.objects) do
        list[i] = convert(object, request.desiredAPIVersion)
      end
      return { result = { status = "Success" }, convertedObjects = list }
    end)
  end)

  after_each(testwebhooks.remove)

  local function serve(strategy)
    server:must("POST", CRDS, crd(strategy == "Webhook" and { strategy = strategy, webhook = {
      clientConfig = { url = "https://127.0.0.1:1/convert" }, conversionReviewVersions = host.json.array { "v1" },
    } } or nil))
    hostlua.poll()
  end

  local function apply(name, manager, spec, force)
    return server:call("PATCH", BOXES:format(name, manager) .. (force and "&force=true" or ""), {
      apiVersion = "e.com/" .. name, kind = "Box", metadata = { name = "a" }, spec = spec,
    }, { ["content-type"] = "application/apply-patch+yaml" })
  end

  -- Manager → version and the fields of spec that it owns, sorted.
  local function owners(path)
    local object, found = server:must("GET", path or "/apis/e.com/v1/namespaces/default/boxes/a"), {}
    for _, entry in ipairs(object.metadata.managedFields or {}) do
      local names = {}
      for name in pairs(entry.fieldsV1["f:spec"] or entry.fieldsV1) do
        names[#names + 1] = name:sub(3)
      end
      table.sort(names)
      found[entry.manager] = entry.apiVersion .. " " .. table.concat(names, ",")
    end
    return found
  end

  it("has the webhook say which fields of theirs have changed", function()
    serve "Webhook"
    assert.equal(201, (apply("v2", "first", { row = "3", shelf = "top" })))
    local code, answer = apply("v1", "second", { place = "4/top" })
    assert.equal(409, code)
    assert.same({ { reason = "FieldManagerConflict", field = ".spec.row", message = 'conflict with "first"' } },
      answer.details.causes)
    assert.equal(200, (apply("v1", "second", { place = "4/top" }, true)))
    assert.same({ first = "e.com/v2 shelf", second = "e.com/v1 place" }, owners())
  end)

  it("lets a write in another version take what it changes, and nothing else", function()
    serve "Webhook"
    apply("v2", "first", { row = "3", shelf = "top", count = 1 })
    server:must("PATCH", BOXES:format("v1", "second"), { spec = { place = "3/low" } },
      { ["content-type"] = "application/merge-patch+json" })
    assert.same({ first = "e.com/v2 count,row", second = "e.com/v1 place" }, owners())
  end)

  it("takes out what a manager had in another version and does not apply any more", function()
    serve "Webhook"
    apply("v2", "first", { row = "3", shelf = "top", count = 1 })
    local code, object = apply("v1", "first", { count = 1 })
    assert.equal(200, code)
    assert.same({ count = 1 }, object.spec)
    assert.same({ first = "e.com/v1 count" }, owners())
  end)

  it("keeps for others what they own in their version", function()
    serve "Webhook"
    apply("v2", "first", { row = "3", shelf = "top", count = 1 })
    assert.equal(200, (apply("v1", "second", { place = "3/top" })))
    local _, object = apply("v2", "first", { count = 1 })
    assert.same({ count = 1, row = "3", shelf = "top" }, object.spec)
    assert.same({ first = "e.com/v2 count", second = "e.com/v1 place" }, owners())
  end)

  it("asks nobody when all have the version of the write, which is the stored one", function()
    serve "Webhook"
    apply("v1", "first", { place = "3/top" })
    apply("v1", "second", { count = 1 })
    assert.equal(0, asked)
  end)

  it("refuses to apply when the webhook fails; an update goes on, and nobody owns anything", function()
    serve "Webhook"
    apply("v2", "first", { row = "3", shelf = "top" })
    is_broken = true
    local code, answer = apply("v1", "second", { count = 1 })
    assert.equal(500, code)
    assert.matches("^conversion webhook for e.com/v1, Kind=Box failed: ", answer.message)
    server:must("PATCH", BOXES:format("v1", "second"), { spec = { count = 2 } },
      { ["content-type"] = "application/merge-patch+json" })
    is_broken = false
    assert.same({}, owners())
    assert.same({ place = "3/top", count = 2 }, server:must("GET", "/apis/e.com/v1/namespaces/default/boxes/a").spec)
  end)

  it("compares fields of the same name where nothing is converted, also of a version that is not served any more",
    function()
      serve "None"
      apply("v2", "first", { count = 1 })
      local object = server:must("GET", CRDS .. "/boxes.e.com")
      object.spec.versions[2].served = false
      server:must("PUT", CRDS .. "/boxes.e.com", object)
      hostlua.poll()
      assert.equal(409, (apply("v1", "second", { count = 2 })))
      assert.equal(200, (apply("v1", "second", { count = 2 }, true)))
      assert.same({ second = "e.com/v1 count" }, owners())
    end)

  it("knows an Event by both of its groups", function()
    local PATH = "/apis/events.k8s.io/v1/namespaces/default/events"
    server:must("POST", PATH .. "?fieldManager=first", {
      metadata = { name = "e" }, eventTime = "2026-01-01T00:00:00.000000Z", reportingController = "a.com/b",
      reportingInstance = "x", action = "a", reason = "r", type = "Normal", note = "one",
      regarding = { kind = "Pod", name = "p", namespace = "default" },
    })
    server:must("PATCH", "/api/v1/namespaces/default/events/e?fieldManager=second", { message = "two" },
      { ["content-type"] = "application/merge-patch+json" })
    local found = owners(PATH .. "/e")
    assert.equal("v1 message", found.second)
    assert.is_nil(found.first:find("note", 1, true))
    assert.matches("regarding", found.first)
  end)
end)
