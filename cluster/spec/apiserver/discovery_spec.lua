--- Discovery: compared with what a real server answered.
local host = require "cluster.host"
local order = require "cluster.apiserver.discovery.order"
local recorded = require "recorded"
local testserver = require "testserver"

local V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
local V2BETA1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"

local expected = recorded.json "discovery.json"


local function with_widgets()
  local server = testserver.new()
  server:must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", recorded.yaml "widgets.yaml")
  server.settle()
  return server
end


local function by_name(list, name)
  for _, item in ipairs(list) do
    if (item.name or item.metadata.name) == name then
      return item
    end
  end
end


describe("the order of versions", function()
  it("is the one of the real server", function()
    local sorted = { "foo10", "v1", "v11beta2", "v12alpha1", "v10beta3", "v3beta1", "v11alpha2", "foo1", "v2", "v10" }
    table.sort(sorted, order.version_before)
    assert.same({ "v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10" },
      sorted)
  end)
end)


describe("discovery", function()
  local server
  setup(function()
    server = with_widgets()
  end)

  it("lists a built-in group as the real server", function()
    assert.same(expected.apps, server:must("GET", "/apis/apps/v1"))
  end)

  it("lists the core group as the real server", function()
    local resources = server:must("GET", "/api/v1").resources
    for _, resource in ipairs(expected.core.resources) do
      assert.same(resource, by_name(resources, resource.name))
    end
  end)

  it("lists custom resources as the real server", function()
    assert.same(expected.widgets, server:must("GET", "/apis/stable.example.com/v1"))
  end)

  it("puts built-in groups first, in their own order, and others by name", function()
    local names = {}
    for i, group in ipairs(server:must("GET", "/apis").groups) do
      names[i] = group.name
    end
    assert.equal("apiregistration.k8s.io", names[1])
    assert.equal("apps", names[2])
    assert.equal("stable.example.com", names[#names])
  end)

  it("names the versions of a group, the preferred one first", function()
    assert.same({
      kind = "APIGroup", apiVersion = "v1", name = "stable.example.com",
      versions = {
        { groupVersion = "stable.example.com/v1", version = "v1" },
        { groupVersion = "stable.example.com/v1beta1", version = "v1beta1" },
      },
      preferredVersion = { groupVersion = "stable.example.com/v1", version = "v1" },
    }, server:must("GET", "/apis/stable.example.com"))
  end)

  it("tells the address it was asked at", function()
    local _, answer = server:call("GET", "/api", nil, { host = "127.0.0.1:6443" })
    assert.equal("127.0.0.1:6443", answer.serverAddressByClientCIDRs[1].serverAddress)
    assert.same({ "v1" }, answer.versions)
  end)

  local failures = {
    { "GET", "/apis/nope", 404, "404 page not found\n" },
    { "GET", "/apis/stable.example.com/v9", 404, "404 page not found\n" },
    { "GET", "/apis/stable.example.com/v1alpha1", 404, "404 page not found\n" },
    { "GET", "/apis/apps/v9", 404, "the server could not find the requested resource" },
    { "GET", "/api/v9", 404, "the server could not find the requested resource" },
    { "POST", "/api/v1", 405, "the server does not allow this method on the requested resource" },
  }
  for _, case in ipairs(failures) do
    it(("answers %s %s with %d"):format(case[1], case[2], case[3]), function()
      local code, answer = server:call(case[1], case[2])
      assert.equal(case[3], code)
      assert.equal(case[4], type(answer) == "table" and answer.message or answer)
    end)
  end

  it("forgets a group when its definition goes", function()
    local own = with_widgets()
    own:must("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.stable.example.com")
    own.settle()
    assert.equal(404, (own:call("GET", "/apis/stable.example.com")))
  end)
end)


describe("aggregated discovery", function()
  local server
  setup(function()
    server = with_widgets()
  end)

  local function ask(path, headers)
    local reply = server:send("GET", path, nil, headers)
    return reply, reply.body ~= "" and host.json.decode(reply.body)
  end

  it("tells of groups as the real server", function()
    local reply, answer = ask("/apis", { accept = V2 })
    assert.equal(V2, reply.kind)
    for _, group in ipairs(expected.aggregated) do
      assert.same(group, by_name(answer.items, group.metadata.name))
    end
  end)

  it("has the core group at /api", function()
    local _, answer = ask("/api", { accept = V2 .. "," .. V2BETA1 .. ",application/json" })
    assert.equal(1, #answer.items)
    assert.is_nil(answer.items[1].metadata.name)
  end)

  it("is given in the second version only", function()
    local reply, answer = ask("/apis", { accept = V2BETA1 .. ",application/json" })
    assert.equal("application/json", reply.kind)
    assert.equal("APIGroupList", answer.kind)
    assert.equal(406, ask("/apis", { accept = V2BETA1 }).code)
    assert.equal(406, ask("/apis/apps/v1", { accept = V2 }).code)
  end)

  it("is not sent again to who has it", function()
    local reply = ask("/apis", { accept = V2 })
    local again = ask("/apis", { accept = V2, ["if-none-match"] = reply.headers.ETag })
    assert.equal(304, again.code)
    assert.equal("", again.body)
    assert.equal("public", again.headers["Cache-Control"])
  end)

  it("has another ETag when something else is served", function()
    local before = ask("/apis", { accept = V2 }).headers.ETag
    server = with_widgets()
    assert.equal(before, ask("/apis", { accept = V2 }).headers.ETag)
    server:must("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.stable.example.com")
    server.settle()
    assert.not_equal(before, ask("/apis", { accept = V2 }).headers.ETag)
  end)
end)
