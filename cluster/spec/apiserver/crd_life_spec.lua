local host = require "cluster.host"
local hostlua = require "hostlua"
local testserver = require "testserver"

local CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
local THINGS = "/apis/e.com/v1/namespaces/default/things"


local function version(name, properties, more)
  local made = {
    name = name, served = true, storage = true,
    schema = { openAPIV3Schema = {
      type = "object", properties = { spec = { type = "object", properties = properties } },
    } },
  }
  for key, value in pairs(more or {}) do
    made[key] = value
  end
  return made
end


local function crd(versions, plural, kind)
  plural, kind = plural or "things", kind or "Thing"
  return {
    metadata = { name = plural .. ".e.com" },
    spec = {
      group = "e.com", scope = "Namespaced", names = { plural = plural, kind = kind },
      versions = host.json.array(versions),
    },
  }
end


local function thing(name, spec)
  return { apiVersion = "e.com/v1", kind = "Thing", metadata = { name = name }, spec = spec }
end


describe("a CRD", function()
  local world

  local function create(made)
    world:must("POST", CRDS, made)
    hostlua.poll()
  end

  local function condition(name, kind)
    for _, one in ipairs(world:must("GET", CRDS .. "/" .. name).status.conditions) do
      if one.type == kind then
        return one
      end
    end
  end

  before_each(function() world = testserver.new() end)

  it("is served once it is established", function()
    world:must("POST", CRDS, crd { version("v1", { a = { type = "string" } }) })
    assert.equal(404, (world:call("GET", THINGS)))
    hostlua.poll()
    assert.equal("True", condition("things.e.com", "Established").status)
    assert.equal("ThingList", world:must("GET", THINGS).kind)
  end)

  it("changes what is served, and what is stored, at once", function()
    create(crd { version("v1", { a = { type = "string" }, b = { type = "string" } }) })
    local before = world:must("POST", THINGS, thing("one", { a = "x", b = "y" }))
    local changed = world:must("GET", CRDS .. "/things.e.com")
    changed.spec.versions = { version("v1", { a = { type = "string" }, c = { type = "string", default = "z" } }) }
    world:must("PUT", CRDS .. "/things.e.com", changed)
    local after = world:must("GET", THINGS .. "/one")
    assert.same({ a = "x", c = "z" }, after.spec)
    assert.equal(before.metadata.resourceVersion, after.metadata.resourceVersion)
  end)

  it("shows each version what its schema knows", function()
    create(crd {
      version("v1", { a = { type = "string" }, old = { type = "string" } }, { storage = false }),
      version("v2", { a = { type = "string" }, new = { type = "string", default = "n" } }),
    })
    world:must("POST", THINGS, thing("one", { a = "x", old = "o" }))
    assert.same({ a = "x" }, world:must("GET", THINGS .. "/one").spec)
    assert.same({ a = "x", new = "n" }, world:must("GET", (THINGS:gsub("/v1/", "/v2/")) .. "/one").spec)
  end)

  it("waits for a name that another one has", function()
    create(crd { version("v1", {}) })
    create(crd({ version("v1", {}) }, "gadgets"))
    assert.equal("KindConflict", condition("gadgets.e.com", "NamesAccepted").reason:gsub("List", ""))
    assert.equal("NotAccepted", condition("gadgets.e.com", "Established").reason)
    world:must("DELETE", CRDS .. "/things.e.com")
    hostlua.poll()
    assert.equal("True", condition("gadgets.e.com", "Established").status)
  end)

  it("goes after what it defines", function()
    create(crd { version("v1", {}) })
    world:must("POST", THINGS, thing "gone")
    local kept = thing "kept"
    kept.metadata.finalizers = host.json.array { "e.com/mine" }
    world:must("POST", THINGS, kept)
    world:must("DELETE", CRDS .. "/things.e.com")
    hostlua.poll()
    assert.equal("InstanceDeletionInProgress", condition("things.e.com", "Terminating").reason)
    assert.equal(404, (world:call("GET", THINGS .. "/gone")))
    assert.equal(403, (world:call("POST", THINGS, thing "late")))
    local object = world:must("GET", THINGS .. "/kept")
    object.metadata.finalizers = nil
    world:must("PUT", THINGS .. "/kept", object)
    hostlua.poll()
    assert.equal(404, (world:call("GET", CRDS .. "/things.e.com")))
    assert.equal(404, (world:call("GET", THINGS)))
  end)

  it("decodes no schema before its kind is used, and keeps none that was only published", function()
    create(crd { version("v1", { a = { type = "string" } }) })
    local res = world.server.registry:find("e.com", "v1", "things")
    world:must("GET", "/apis/e.com/v1")
    world:must("GET", "/apis", nil, { accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList" })
    world:must("GET", "/openapi/v2")
    world:must("GET", "/openapi/v3/apis/e.com/v1")
    assert.is_nil(rawget(res, "schema"))
    assert.is_nil(rawget(res, "strategy"))
    world:must("POST", THINGS, thing("one", { a = "x", b = "y" }))
    assert.same({ a = "x" }, world:must("GET", THINGS .. "/one").spec)
    assert.truthy(rawget(res, "schema"))
  end)

  it("is written without a look at the others", function()
    for i = 1, 3 do
      create(crd({ version("v1", {}) }, "other" .. i .. "s", "Other" .. i))
    end
    local decoded, decode = 0, host.json.decode
    host.json.decode = function(text)
      decoded = decoded + (text:find("other", 1, true) and 1 or 0)
      return decode(text)
    end
    local ok, why = pcall(create, crd { version("v1", {}) })
    host.json.decode = decode
    assert.truthy(ok, why)
    assert.equal(0, decoded)
  end)

  it("gives a new object the defaults of its status, which a create cannot set", function()
    local made = version("v1", {}, { subresources = { status = {} } })
    made.schema.openAPIV3Schema.properties.status = {
      type = "object", default = { seen = -1 },
      properties = { seen = { type = "integer" }, deep = { type = "string", default = "d" } },
    }
    create(crd { made })
    local sent = thing "one"
    sent.status = { seen = 7 }
    assert.same({ seen = -1, deep = "d" }, world:must("POST", THINGS .. "?dryRun=All", sent).status)
    assert.same({ seen = -1, deep = "d" }, world:must("POST", THINGS, sent).status)
    local object = world:must("GET", THINGS .. "/one")
    assert.same({ seen = -1, deep = "d" }, object.status)
    for _, entry in ipairs(object.metadata.managedFields or {}) do
      assert.is_nil(entry.fieldsV1["f:status"])
    end
  end)

  it("with a scale says where its path leads nowhere", function()
    local made = version("v1", { size = { type = "object", ["x-kubernetes-preserve-unknown-fields"] = true } },
      { subresources = { scale = { specReplicasPath = ".spec.size.want.now", statusReplicasPath = ".status.size" } } })
    create(crd { made })
    local _, answer = world:call("POST", THINGS, thing("one", { size = { want = "x" } }))
    assert.equal('Thing.e.com "one" is invalid: .spec.size.want.now: Invalid value: 0: .spec.size.want.now accessor '
      .. "error: x is of the type string, expected map[string]interface{}", answer.message)
    _, answer = world:call("POST", THINGS, thing("one", { size = 5 }))
    assert.truthy(answer.message:find(".spec.size.want accessor error: 5 is of the type int64", 1, true))
    world:must("POST", THINGS, thing("one", {}))
    local code
    code, answer = world:patch("merge", THINGS .. "/one/scale", { metadata = { labels = {} } })
    assert.same({ 400, 'the spec replicas field ".spec.size.want.now" cannot be empty' }, { code, answer.message })
    assert.equal(200, (world:patch("merge", THINGS .. "/one/scale", { spec = { replicas = 3 } })))
    assert.equal(3, world:must("GET", THINGS .. "/one").spec.size.want.now)
  end)

  it("whose scale looks elsewhere now says what is there", function()
    local scale = { specReplicasPath = ".spec.size", statusReplicasPath = ".status.size" }
    local properties = { size = { type = "integer" }, word = { type = "string" } }
    create(crd { version("v1", properties, { subresources = { scale = scale } }) })
    world:must("POST", THINGS, thing("one", { size = 1, word = "w" }))
    local changed = world:must("GET", CRDS .. "/things.e.com")
    changed.spec.versions[1].subresources.scale.specReplicasPath = ".spec.word.deep"
    world:must("PUT", CRDS .. "/things.e.com", changed)
    for _, verb in ipairs { "GET", "PUT" } do
      local body = { apiVersion = "autoscaling/v1", kind = "Scale", metadata = { name = "one", namespace = "default" },
        spec = { replicas = 2 } }
      local _, answer = world:call(verb, THINGS .. "/one/scale", verb == "PUT" and body or nil)
      assert.equal(".spec.word.deep accessor error: w is of the type string, expected map[string]interface{}",
        answer.message)
    end
  end)

  it("of Kubernetes' own groups says whether it was approved", function()
    local made = crd { version("v1", {}) }
    made.spec.group, made.metadata.name = "x.k8s.io", "things.x.k8s.io"
    made.metadata.annotations = { ["api-approved.kubernetes.io"] = "unapproved, a test" }
    create(made)
    local said = condition("things.x.k8s.io", "KubernetesAPIApprovalPolicyConformant")
    assert.same({ "False", "UnapprovedAnnotation", 'not approved: "unapproved, a test"' },
      { said.status, said.reason, said.message })
    assert.equal("True", condition("things.x.k8s.io", "Established").status)
    world:patch("merge", CRDS .. "/things.x.k8s.io", { metadata = { annotations = {
      ["api-approved.kubernetes.io"] = "https://github.com/kubernetes/kubernetes/pull/1" } } })
    hostlua.poll()
    said = condition("things.x.k8s.io", "KubernetesAPIApprovalPolicyConformant")
    assert.same({ "True", "ApprovedAnnotation", "approved in https://github.com/kubernetes/kubernetes/pull/1" },
      { said.status, said.reason, said.message })
    create(crd { version("v1", {}) })
    assert.is_nil(condition("things.e.com", "KubernetesAPIApprovalPolicyConformant"))
  end)

  it("that was kept is served again", function()
    create(crd { version("v1", {}) })
    world.server.registry:remove("things.e.com")
    world.server.crds.served_crds = {}
    world.server.crds:restore()
    assert.equal("ThingList", world:must("GET", THINGS).kind)
  end)
end)
