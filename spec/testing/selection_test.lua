-- Scripts that watch a part of a kind.
local moonloop = require "moonloop"
local testing = require "moonloop.testing"

local Thing = moonloop.kind("example.com/v1", "Thing")
local Secret = moonloop.kind("v1", "Secret")

local function thing(mode, labels)
  return {
    apiVersion = Thing.apiVersion, kind = Thing.kind,
    metadata = { name = "a", labels = labels },
    spec = { mode = mode },
  }
end


local function secret(name, labels)
  return {
    apiVersion = "v1", kind = "Secret", metadata = { name = name, labels = labels }, stringData = { k = "v" },
  }
end


describe("A script that watches a part of a kind, by its metadata", function()
  local world

  before_each(function()
    world = testing.world { scripts = "spec/testing/changes/picked.lua", crds = "spec/testing/crds" }
    world.apply { secret("one", { app = "chosen" }), secret("two", { app = "two" }), secret "three" }
  end)

  local function sees(seen)
    world.expect(Thing, "a", { status = { seen = seen } })
  end

  it("sees what is selected and what it made, and no more of it than it asked for", function()
    world.apply(thing "x")
    sees "made, one"
    world.expect(Thing, "a", { status = { made = "dg==" } }) -- ctx.ensure gives the whole object
  end)

  it("is told of what enters the part, and of what leaves it", function()
    world.apply(thing "x")
    world.patch(Secret, "two", { metadata = { labels = { app = "chosen", ["for"] = "a" } } })
    sees "made, one, two"
    world.patch(Secret, "two", { metadata = { labels = { app = "two" } } })
    sees "made, one"
  end)

  it("writes nothing that it would never see", function()
    world.apply(thing "stray")
    world.expect(Secret, "stray", false)
    local events = world.events(Thing, "a")
    assert.truthy(events[1] and events[1].note:find("'app in (picked, chosen)' does not hold", 1, true))
  end)

  it("settles: its own writes come back on the watch", function()
    world.apply(thing "x")
    local writes = #world.requests "create"
    world.restart()
    world.advance "1h"
    assert.equal(writes, #world.requests "create")
    sees "made, one"
  end)
end)


describe("A script that reconciles a part of its kind", function()
  it("is called for an object while that is in the part", function()
    local world = testing.world { scripts = "spec/testing/changes/labelled.lua", crds = "spec/testing/crds" }
    world.apply(thing "x")
    assert.is_nil(world.get(Thing, "a").status)
    world.patch(Thing, "a", { metadata = { labels = { shard = "1" } } })
    world.expect(Thing, "a", { status = { mode = "x" } })
    world.patch(Thing, "a", { metadata = { labels = { shard = "2" } }, spec = { mode = "y" } })
    world.expect(Thing, "a", { status = { mode = "x" } })
    world.patch(Thing, "a", { metadata = { labels = { shard = "1" } } })
    world.expect(Thing, "a", { status = { mode = "y" } })
  end)
end)
