-- moonloop.exact in a world: keys of others go, and nothing else does. exact.lua is beside this file.
local moonloop = require "moonloop"
local testing = require "moonloop.testing"

local Thing = moonloop.kind("example.com/v1", "Thing")
local ConfigMap = moonloop.kind("v1", "ConfigMap")
local Deployment = moonloop.kind("apps/v1", "Deployment")


describe("Maps that are exact", function()
  local world

  before_each(function()
    world = testing.world { crds = "spec/testing/crds", scripts = "spec/testing/exact.lua" }
  end)

  local function start(mode)
    world.apply { apiVersion = Thing.apiVersion, kind = Thing.kind, metadata = { name = "a" }, spec = { mode = mode } }
  end

  local function add_theirs()
    world.patch(ConfigMap, "a", {
      metadata = { labels = { theirs = "yes" }, annotations = { theirs = "yes" } },
      data = { theirs = "yes", ours = "no" }, binaryData = { also = "eWVz" },
    })
  end

  -- The note of the last Event about a failure.
  local function failure()
    world.advance "1m"
    local note
    for _, event in ipairs(world.events(Thing, "a")) do
      note = event.reason == "ReconcileFailed" and event.note or note
    end
    return note
  end

  for _, how in ipairs { "child", "apply" } do
    it("lose the keys of others, and no other map does: " .. how, function()
      start(how .. " data")
      add_theirs()
      local config = world.get(ConfigMap, "a")
      assert.same({ ours = "yes" }, config.data)
      assert.same({ ours = "yes", theirs = "yes" }, config.metadata.labels)
      assert.same({ theirs = "yes" }, config.metadata.annotations)
      assert.same({ also = "eWVz" }, config.binaryData)
      assert.equal(1, #config.metadata.ownerReferences)
    end)

    it("are several at a time: " .. how, function()
      start(how .. " binaryData,data,metadata.annotations,metadata.labels")
      add_theirs()
      local config = world.get(ConfigMap, "a")
      assert.same({ ours = "yes" }, config.data)
      assert.same({ ours = "yes" }, config.metadata.labels)
      assert.is_nil(config.metadata.annotations)
      assert.is_nil(config.binaryData)
    end)

    it("cost nothing while nothing changes: " .. how, function()
      start(how .. " data,metadata.labels")
      add_theirs()
      local before = #world.requests()
      world.patch(Thing, "a", { metadata = { labels = { any = "thing" } } })
      assert.equal(before, #world.requests())
    end)
  end

  it("are empty when the script gives no key", function()
    start "child data none"
    add_theirs()
    assert.is_nil(world.get(ConfigMap, "a").data)
  end)

  it("are deep within an object, too", function()
    start "child spec.template.metadata.annotations,spec.template.metadata.labels pods"
    local theirs = { metadata = { annotations = { theirs = "yes" } } }
    world.patch(Deployment, "a", { metadata = theirs.metadata, spec = { template = theirs } })
    local found = world.get(Deployment, "a")
    assert.same({ ours = "yes" }, found.spec.template.metadata.annotations)
    assert.equal("yes", found.metadata.annotations.theirs)
  end)

  it("keep what the script says when it says that they are exact no more", function()
    start "child data"
    start "child metadata.labels"
    add_theirs()
    assert.same({ ours = "yes", theirs = "yes" }, world.get(ConfigMap, "a").data)
    assert.same({ ours = "yes" }, world.get(ConfigMap, "a").metadata.labels)
  end)

  it("are answered to ctx.apply without the keys of others", function()
    start "apply data"
    add_theirs()
    world.expect(Thing, "a", { status = { text = "none" } })
  end)

  it("are maps: a list is an error that names it, and the object stays as it is", function()
    start "child spec.template.spec.containers pods"
    assert.truthy(failure():find('"spec.template.spec.containers" is a list; expected a map', 1, true))
    start "child spec.template.spec.tolerations pods"
    world.patch(Deployment, "a", { spec = { template = { spec = { tolerations = { { key = "theirs" } } } } } })
    assert.truthy(failure():find("'spec.template.spec.tolerations' of this Deployment is no map", 1, true))
    assert.equal("theirs", world.get(Deployment, "a").spec.template.spec.tolerations[1].key)
  end)
end)
