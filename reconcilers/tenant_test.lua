local cjson = require "cjson"
local moonloop = require "moonloop"
local testing = require "moonloop.testing"

local Namespace = moonloop.kind("v1", "Namespace")
local NetworkPolicy = moonloop.kind("networking.k8s.io/v1", "NetworkPolicy")
local ResourceQuota = moonloop.kind("v1", "ResourceQuota")
local RoleBinding = moonloop.kind("rbac.authorization.k8s.io/v1", "RoleBinding")
local Tenant = moonloop.kind("platform.example.com/v1", "Tenant")

local SPACE = "tenant-red"

local function tier(name, pods)
  return {
    apiVersion = "v1", kind = "ConfigMap", metadata = { name = name, namespace = "tenant-tiers" },
    data = { quota = ("pods: %s\nrequests.cpu: '4'\n"):format(pods), network = "- from: [{ podSelector: {} }]\n" },
  }
end


local function tenant(spec, name)
  return { apiVersion = Tenant.apiVersion, kind = Tenant.kind, metadata = { name = name or "red" }, spec = spec }
end


describe("tenant", function()
  local world, posted, status

  before_each(function()
    world = testing.world { now = "2026-07-03T10:00:00Z" }
    posted, status = {}, 200
    world.http(function(request)
      posted[#posted + 1] = request
      return { status = status, body = "" }
    end)
    world.apply {
      { apiVersion = "v1", kind = "Namespace", metadata = { name = "tenant-tiers" } },
      tier("bronze", 20),
      tier("gold", 200),
    }
  end)

  local function condition(type, name)
    for _, each in ipairs(world.get(Tenant, name or "red").status.conditions or {}) do
      if each.type == type then
        return each
      end
    end
  end

  local function expect_pods(count, name)
    local space = "tenant-" .. (name or "red")
    world.expect(ResourceQuota, "tenant", { spec = { hard = { pods = count, ["requests.cpu"] = "4" } } }, space)
  end

  -- The users that have each role: { admin = "alice bob" }
  local function roles()
    local found = {}
    for _, binding in ipairs(world.list(RoleBinding)) do
      if binding.metadata.namespace == SPACE then
        local users = {}
        for index, subject in ipairs(binding.subjects) do
          users[index] = subject.name
        end
        found[binding.roleRef.name] = table.concat(users, " ")
      end
    end
    return found
  end

  it("has a namespace with a quota, rules for the network, and roles", function()
    world.apply(tenant { tier = "bronze", admins = { "alice" }, viewers = { "bob", "carol" } })
    world.expect(Namespace, SPACE, { metadata = { ownerReferences = { { kind = "Tenant", name = "red" } } } })
    expect_pods "20"
    world.expect(NetworkPolicy, "tenant", { spec = { ingress = { { from = { { podSelector = {} } } } } } }, SPACE)
    assert.same({ admin = "alice", view = "bob carol" }, roles())
    world.expect(Tenant, "red", { status = { namespace = SPACE } })
    assert.equal("True", condition("Ready").status)
  end)

  it("takes roles away", function()
    world.apply(tenant { tier = "bronze", admins = { "alice" }, editors = { "dan" }, viewers = { "bob", "carol" } })
    world.apply(tenant { tier = "bronze", admins = { "alice" }, viewers = { "carol" } })
    assert.same({ admin = "alice", view = "carol" }, roles())
  end)

  it("follows its tier when that is edited, and when it has another", function()
    world.apply { tenant { tier = "bronze" }, tenant({ tier = "gold" }, "blue") }
    world.apply(tier("bronze", 30))
    expect_pods "30"
    expect_pods("200", "blue")
    world.apply(tenant { tier = "gold" })
    expect_pods "200"
    world.apply(tier("bronze", 40))
    expect_pods "200"
  end)

  it("reconciles the tenants of the edited tier alone", function()
    world.apply { tenant { tier = "bronze" }, tenant({ tier = "gold" }, "blue") }
    local before = #world.requests()
    world.apply(tier("gold", 300))
    local requests = world.requests()
    assert.is_true(#requests > before)
    for index = before + 1, #requests do
      assert.is_nil(requests[index].path:find("tenant-red", 1, true))
    end
  end)

  for _, bad in ipairs {
    { "is not there", nil, "there is no ConfigMap tenant-tiers/odd" },
    { "is no YAML", { quota = "a: [", network = "[]" }, "ConfigMap tenant-tiers/odd, quota: " },
    { "lacks a part", { quota = "pods: 1" }, "ConfigMap tenant-tiers/odd, network: " },
  } do
    it(("says that its tier %s, and waits for it"):format(bad[1]), function()
      if bad[2] then
        local map = tier("odd", 1)
        map.data = bad[2]
        world.apply(map)
      end
      world.apply(tenant { tier = "odd" })
      assert.equal("False", condition("Ready").status)
      assert.matches(bad[3], condition("Ready").message, 1, true)
      world.expect(Namespace, SPACE, false)
      world.apply(tier("odd", 5))
      expect_pods "5"
      assert.equal("True", condition("Ready").status)
    end)
  end

  it("reports to the accounts every night", function()
    world.apply(tenant { tier = "bronze" })
    assert.equal(0, #posted)
    world.advance "16h"
    assert.equal(1, #posted)
    assert.equal("https://accounts.example.com/usage", posted[1].url)
    local body = cjson.decode(posted[1].body)
    assert.same({ "red", "bronze", "0" }, { body.tenant, body.tier, body.used.pods })
    world.expect(Tenant, "red", { status = { reportedAt = "2026-07-04T02:00:00Z" } })
    world.restart()
    world.advance "23h"
    assert.equal(1, #posted)
    world.advance "1h"
    assert.equal(2, #posted)
  end)

  it("reports again, by the same key, when the accounts did not take it", function()
    status = 503
    world.apply(tenant { tier = "bronze" })
    world.advance "16h"
    world.advance "6m"
    assert.equal(2, #posted)
    assert.equal(posted[1].headers["Idempotency-Key"], posted[2].headers["Idempotency-Key"])
    assert.equal("False", condition("Reported").status)
    assert.equal("the accounts answered 503", condition("Reported").message)
    status = 200
    world.advance "5m"
    assert.equal(3, #posted)
    assert.equal("True", condition("Reported").status)
  end)

  it("takes its namespace along", function()
    world.apply(tenant { tier = "bronze", admins = { "alice" } })
    world.delete(Tenant, "red")
    world.advance "1m"
    world.expect(Namespace, SPACE, false)
    assert.same({}, roles())
  end)

  it("gets its namespace again when somebody deletes it", function()
    world.apply(tenant { tier = "bronze" })
    local first = world.get(Namespace, SPACE).metadata.uid
    world.delete(Namespace, SPACE)
    world.advance "1m"
    assert.are_not.equal(first, world.get(Namespace, SPACE).metadata.uid)
    expect_pods "20"
  end)
end)
