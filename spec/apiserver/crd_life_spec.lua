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

  for _, case in ipairs {
    { "conversion by webhook", "conversion by webhook %(spec%.conversion%.strategy: Webhook%)", function(made)
      made.spec.conversion = { strategy = "Webhook", webhook = { conversionReviewVersions = host.json.array { "v1" } } }
    end },
    { "rules in CEL", "validation rules in CEL %(.*properties%[a%]%.x%-kubernetes%-validations%)", function(made)
      made.spec.versions[1].schema.openAPIV3Schema.properties.spec.properties.a = {
        type = "string", ["x-kubernetes-validations"] = host.json.array { { rule = "self != ''" } },
      }
    end },
  } do
    it("is refused, not passed over, with " .. case[1], function()
      local made = crd { version("v1", {}) }
      case[3](made)
      local code, answer = world:call("POST", CRDS, made)
      assert.equal(501, code)
      assert.equal("NotImplemented", answer.reason)
      assert.matches(case[2], answer.message)
    end)
  end

  it("that was kept is served again", function()
    create(crd { version("v1", {}) })
    world.server.registry:remove("things.e.com")
    world.server.crds.served = {}
    world.server.crds:restore()
    assert.equal("ThingList", world:must("GET", THINGS).kind)
  end)
end)
