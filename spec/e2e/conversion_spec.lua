-- Custom resources that a webhook converts: the embedded server shows, stores and watches them as the real one does,
-- and says the same when the webhook is wrong.
local api = require "spec.e2e.support.api"
local cluster = require "spec.e2e.support.cluster"
local cjson = require "cjson.safe"
local mime = require "mime"
local shell = require "spec.e2e.support.shell"
local wait = require "spec.e2e.support.wait"
local webhooks = require "spec.e2e.support.webhooks"

local CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
local FAILED = "conversion webhook for GROUP/v1, Kind=Box "

-- Path of the webhook, and how the message begins that a reader of the other version gets.
local WRONG = {
  { "convertuid", 'failed: expected response.uid="' },
  { "convertfailure", "failed: no boxes today" },
  { "convertsilent", "failed: response.result.status was 'Failure', not 'Success'" },
  { "convertnothing", "returned 0 objects, expected 1" },
  { "convertversion", "returned invalid object at index 0: invalid groupVersion (expected GROUP/v2, received "
    .. "other.io/v7)" },
  { "convertkind", "returned invalid object at index 0: invalid kind (expected Box, received Bag)" },
  { "convertname", "returned invalid object: must have the same name: a != b" },
  { "convertmeta", 'returned invalid metadata: metadata.labels: Invalid value: "a b": ' },
  { "convertnumber", "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted "
    .. "object" },
  { "garbage", "failed: couldn't get version/kind; json parse error: " },
  { "notfound", "failed: the server could not find the requested resource" },
  { "error", 'failed: an error on the server ("unknown") has prevented the request from succeeding' },
  { "close", 'failed: Post "URL?timeout=30s": ' },
}


local function version(name, properties)
  local text = { type = "string" }
  local fields = {}
  for _, property in ipairs(properties) do
    fields[property] = text
  end
  return {
    name = name, served = true, storage = name == "v1",
    schema = { openAPIV3Schema = { type = "object", properties = {
      spec = { type = "object", properties = fields },
    } } },
  }
end


describe("Conversion webhooks", function()
  local server, ns, group, path

  setup(function()
    server = webhooks.serve "conversion"
  end)

  teardown(function()
    server.stop()
  end)

  before_each(function()
    ns = cluster.namespace "conversion"
    group = ns .. ".example.com"
    path = CRDS .. "/boxes." .. group
  end)

  after_each(function()
    api.request("DELETE", path)
    cluster.forget(ns)
  end)

  local function boxes(name)
    return ("/apis/%s/%s/namespaces/%s/boxes"):format(group, name, ns)
  end

  local function url(name)
    return ("https://127.0.0.1:%d/%s"):format(server.port, name)
  end

  -- A request, again while the server says that it is to be asked later: it starts anew what it keeps of a CRD that has
  -- changed.
  local function ask(method, where, body)
    local answer, code
    wait.till("the server to be ready", 20, function()
      answer, code = api.request(method, where, body, method == "PATCH" and "application/merge-patch+json" or nil)
      return code ~= 429, answer and answer.message
    end)
    return answer, code
  end

  local function must(code, method, where, body)
    local answer, got = ask(method, where, body)
    assert.equal(code, got, answer and answer.message)
    return answer
  end

  local function config(name)
    return { url = url(name), caBundle = mime.b64(server.authority.certificate) }
  end

  local function till_served()
    wait.till("boxes to be served", 20, function()
      return select(2, api.request("GET", boxes "v1")) == 200 and select(2, api.request("GET", boxes "v2")) == 200
    end)
  end

  local function serve()
    must(201, "POST", CRDS, { metadata = { name = "boxes." .. group }, spec = {
      group = group, scope = "Namespaced", names = { plural = "boxes", kind = "Box" },
      conversion = { strategy = "Webhook", webhook = {
        clientConfig = config "convert", conversionReviewVersions = { "v1" } } },
      versions = { version("v1", { "place" }), version("v2", { "row", "shelf" }) },
    } })
    till_served()
  end

  local function change(fn)
    local object = must(200, "GET", path)
    fn(object.spec)
    must(200, "PUT", path, object)
  end

  local function box(name, version_name, spec)
    return { apiVersion = group .. "/" .. version_name, kind = "Box", metadata = { name = name }, spec = spec }
  end

  it("show an object in each version, and store it in one", function()
    serve()
    local made = must(201, "POST", boxes "v2", box("a", "v2", { row = "1", shelf = "top" }))
    assert.same({ row = "1", shelf = "top" }, made.spec)
    assert.same({ place = "1/top" }, must(200, "GET", boxes "v1" .. "/a").spec)
    must(200, "PATCH", boxes "v2" .. "/a", { spec = { row = "2" } })
    assert.same({ place = "2/top" }, must(200, "GET", boxes "v1" .. "/a").spec)
    change(function(spec)
      spec.versions[1].storage, spec.versions[2].storage = false, true
    end)
    must(201, "POST", boxes "v1", box("b", "v1", { place = "3/low" }))
    local shelves, places = {}, {}
    for i, item in ipairs(must(200, "GET", boxes "v2").items) do
      shelves[i] = item.apiVersion .. " " .. item.spec.shelf
    end
    for i, item in ipairs(must(200, "GET", boxes "v1").items) do
      places[i] = item.apiVersion .. " " .. item.spec.place
    end
    assert.same({ group .. "/v2 top", group .. "/v2 low" }, shelves)
    assert.same({ group .. "/v1 2/top", group .. "/v1 3/low" }, places)
  end)

  it("keep the metadata, but for labels and annotations", function()
    serve()
    local made = box("a", "v1", { place = "1/top" })
    made.metadata.annotations = { a = "b" }
    made = must(201, "POST", boxes "v1", made)
    change(function(spec) spec.conversion.webhook.clientConfig = config "convertlabels" end)
    local meta = wait.till("the other webhook", 20, function()
      local object = api.request("GET", boxes "v2" .. "/a")
      return object.metadata.labels and object.metadata
    end)
    assert.same({ l = "1" }, meta.labels)
    assert.is_nil(meta.annotations)
    assert.equal(made.metadata.creationTimestamp, meta.creationTimestamp)
    assert.equal(made.metadata.uid, meta.uid)
  end)

  for _, case in ipairs(WRONG) do
    local name, message = table.unpack(case)
    it(("that answer as %s does are told of, and harm nobody else"):format(name), function()
      serve()
      must(201, "POST", boxes "v1", box("a", "v1", { place = "1/top" }))
      change(function(spec) spec.conversion.webhook.clientConfig = config(name) end)
      local wanted = FAILED .. message
      wanted = wanted:gsub("GROUP", (group:gsub("%%", "%%%%"))):gsub("URL", url(name))
      wait.till("the failure", 20, function()
        local answer, code = api.request("GET", boxes "v2" .. "/a")
        return code == 500 and answer.message:sub(1, #wanted) == wanted, cjson.encode(answer)
      end)
      assert.equal(500, select(2, ask("POST", boxes "v2", box("c", "v2", { row = "1", shelf = "low" }))))
      local items = must(200, "GET", boxes "v1").items
      assert.equal(1, #items)
      assert.same({ place = "1/top" }, items[1].spec)
    end)
  end

  it("show watches of another version what is stored", function()
    serve()
    must(201, "POST", boxes "v1", box("a", "v1", { place = "1/top" }))
    local from = must(200, "GET", boxes "v2").metadata.resourceVersion
    must(200, "PATCH", boxes "v1" .. "/a", { spec = { place = "2/top" } })
    must(201, "POST", boxes "v1", box("b", "v1", { place = "3/low" }))
    must(200, "DELETE", boxes "v1" .. "/a")
    local text = shell.must(("%s get --raw '%s?watch=true&timeoutSeconds=2&resourceVersion=%s'"):format(
      os.getenv "KUBECTL" or "kubectl", boxes "v2", from))
    local seen = {}
    for line in text:gmatch "[^\n]+" do
      local event = assert(cjson.decode(line), line)
      seen[#seen + 1] = ("%s %s %s"):format(event.type, event.object.apiVersion:match "[^/]*$", event.object.spec.row)
    end
    assert.same({ "MODIFIED v2 2", "ADDED v2 3", "DELETED v2 2" }, seen)
  end)
end)
