local moonloop = require "moonloop"
local testing = require "moonloop.testing"

describe("moonloop.testing", function()
  local Thing = moonloop.kind("example.com/v1", "Thing")
  local Secret = moonloop.kind("v1", "Secret")

  local function world_with(reconcile)
    return testing.world {
      controller = moonloop.controller {
        name = "thing", reconciles = Thing, owns = { Secret }, reconcile = reconcile,
      },
    }
  end

  local function thing(name)
    return { apiVersion = Thing.apiVersion, kind = Thing.kind, metadata = { name = name }, spec = {} }
  end

  local function secret(value)
    return { apiVersion = "v1", kind = "Secret", metadata = { name = "s" }, data = { v = value } }
  end

  it("comes back when a reconcile asks for it", function()
    local world = world_with(function(_, ctx)
      return { status = { at = ctx.now() }, requeue_at = (ctx.now() // 60 + 1) * 60 }
    end)
    -- Each reconcile of one instant says the same, so it settles.
    world.apply(thing "a")
    world.advance "90s"
    assert.equal(90, world.get(Thing, "a").status.at)
  end)

  it("removes what an object owned along with it", function()
    local world = world_with(function(_, ctx)
      ctx.ensure(secret "1")
    end)
    world.apply(thing "a")
    assert.truthy(world.get(Secret, "s"))
    world.delete(Thing, "a")
    assert.is_nil(world.get(Secret, "s"))
  end)

  it("does not let one object take another's", function()
    local seen
    local world = world_with(function(_, ctx)
      local _, err = ctx.ensure(secret "1")
      seen = err or seen
    end)
    world.apply(thing "a")
    world.apply(thing "b")
    assert.equal("AlreadyExists", seen.kind)
    assert.equal("Secret s exists and is controlled by Thing a", seen.message)
  end)

  it("says so when a reconcile never comes to rest", function()
    local world = world_with(function(object)
      return { status = { n = (object.status.n or 0) + 1 } }
    end)
    assert.error_matches(function()
      world.apply(thing "a")
    end, "no end after 100 rounds")
  end)

  it("refuses kinds that were not declared", function()
    local world = world_with(function(_, ctx)
      ctx.get(moonloop.kind("v1", "Node"), "n")
    end)
    assert.error_matches(function()
      world.apply(thing "a")
    end, "Node v1 is not declared: add it to owns, watches or uses")
  end)

  it("patches, applies and deletes", function()
    local world = world_with(function(object, ctx)
      local there = ctx.apply(secret(object.spec.v or "0"))
      if object.spec.v == "gone" then
        ctx.delete(there)
      elseif object.spec.v == "patched" then
        ctx.patch(there, { data = { v = moonloop.null, w = "x" } })
      end
    end)
    world.apply(thing "a")
    assert.equal("0", world.get(Secret, "s").data.v)
    assert.equal("default", world.get(Secret, "s").metadata.namespace)
  end)
end)
