-- F5: an object that a script made is deleted under it, each of them; a whole kind goes and comes back, with the same
-- version or with another one, and other scripts go on meanwhile.
local bench = require "spec.faults.support.bench"
local invariants = require "spec.faults.support.invariants"
local moonloop = require "moonloop"
local scenarios = require "spec.faults.support.scenarios"
local stage = require "spec.faults.support.stage"
local virtual = require "cluster.world"

local Definition = moonloop.kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
local At, Pod = table.unpack(scenarios.cnat.kinds)
local Thing, ConfigMap, Secret = table.unpack(scenarios.thing.kinds)
local CRD = "things.example.com"

-- Both scripts in one operator.
local both = {
  name = "both",
  kinds = { At, Pod, Thing, ConfigMap, Secret },
  options = {
    scripts = { "reconcilers/cnat.lua", "spec/faults/support/thing.lua" }, crds = { "crds", "spec/testing/crds" },
    now = "2026-07-03T10:00:00Z", pods = "succeed",
  },
}


local function thing(name, mode)
  return { apiVersion = Thing.apiVersion, kind = Thing.kind, metadata = { name = name }, spec = { mode = mode } }
end


local function cached(kind)
  local count = 0
  for _, entry in ipairs(virtual.cached()) do
    count = count + (entry.kind == kind.kind and 1 or 0)
  end
  return count
end


local function definition(world, versions)
  local found = world.get(Definition, CRD)
  local copy = {
    apiVersion = Definition.apiVersion, kind = Definition.kind, metadata = { name = CRD }, spec = found.spec,
  }
  local template = copy.spec.versions[1]
  copy.spec.versions = {}
  for index, name in ipairs(versions) do
    copy.spec.versions[index] = { name = name, served = true, storage = index == 1, schema = template.schema,
      subresources = template.subresources }
  end
  return copy
end


local function count_of(outcome, from, path)
  local count = 0
  for index = from, #outcome.requests do
    count = count + (outcome.requests[index].path == path and 1 or 0)
  end
  return count
end


describe("An object that is deleted under its script", function()
  it("is made again", function()
    local outcome = stage.open(both)
    local world = outcome.world
    world.apply { thing("a", "3 red") }
    for _, kind in ipairs { ConfigMap, Secret } do
      for index = 1, 3 do
        local name = ("a-%d"):format(index)
        local before = world.get(kind, name).metadata.uid
        world.delete(kind, name)
        world.advance "1s"
        assert.not_equal(before, world.get(kind, name).metadata.uid)
        bench.tried("F5", 1)
      end
    end
    stage.close(outcome)
    assert.is_nil(invariants.cache_is_store(outcome))
    assert.is_nil(invariants.at_rest(outcome))
  end)
end)


describe("A kind that goes away", function()
  local function begin()
    local outcome = stage.open(both)
    outcome.world.apply { thing("a", "2 red"), thing("b", "1 green") }
    outcome.world.advance "5s"
    assert.equal(2, cached(Thing))
    return outcome, outcome.world
  end

  -- Others work: an At that becomes due now is done.
  local function assert_others_work(world, name)
    local at = scenarios.at(name, 0)
    world.apply(at)
    world.advance "2s"
    world.expect(At, name, { status = { phase = "DONE" } })
  end

  it("leaves the cache, is looked for each second or two, and is reconciled when it is back", function()
    local count = bench.each_seed("F5", 10, function(seed)
      local outcome, world = begin()
      local again = definition(world, { "v1" })
      world.delete(Definition, CRD)
      local from = #outcome.requests + 1
      world.advance "15s"
      assert.equal(0, cached(Thing))
      world.advance(("%ds"):format(seed * 13))
      assert_others_work(world, "meanwhile")
      local asked = count_of(outcome, from, "/apis/example.com/v1/things")
      assert.is_true(asked >= 2 and asked <= 3 + 15 + seed * 13, asked)
      world.apply(again)
      world.apply { thing("c", "1 blue"), thing("d", "2 new") }
      world.advance "3s"
      world.expect(ConfigMap, "c-1", { data = { text = "blue" } })
      world.expect(ConfigMap, "d-2", { data = { text = "new" } })
      stage.close(outcome)
      assert.is_nil(invariants.cache_is_store(outcome))
      assert.is_nil(invariants.at_rest(outcome))
    end)
    bench.tried("F5", count)
  end)

  it("waits for the version that its script names", function()
    local outcome, world = begin()
    local other, again = definition(world, { "v2" }), definition(world, { "v1", "v2" })
    world.delete(Definition, CRD)
    world.advance "20s"
    world.apply(other)
    world.apply { apiVersion = "example.com/v2", kind = "Thing", metadata = { name = "z" }, spec = { mode = "1 old" } }
    world.advance "60s"
    assert.equal(0, cached(Thing))
    assert_others_work(world, "meanwhile")
    again.metadata.resourceVersion = world.get(Definition, CRD).metadata.resourceVersion
    again.spec.versions[1].storage, again.spec.versions[2].storage = false, true
    world.apply(again)
    world.advance "60s"
    world.expect(ConfigMap, "z-1", { data = { text = "old" } })
    stage.close(outcome)
    assert.is_nil(invariants.cache_is_store(outcome))
    bench.tried("F5", 1)
  end)

  it("ten times over leaves nothing behind", function()
    local outcome, world = begin()
    local again = definition(world, { "v1" })
    for turn = 1, 10 do
      world.delete(Definition, CRD)
      world.advance "30s"
      world.apply(again)
      world.apply(thing("a", ("%d red"):format(turn % 3 + 1)))
      world.advance "30s"
    end
    local before = #outcome.requests
    world.advance "10m"
    local watches = 0
    for index = before + 1, #outcome.requests do
      watches = watches + (outcome.requests[index].is_watch and 1 or 0)
    end
    assert.is_true(watches <= 3 * #both.kinds, watches) -- one for each kind, resumed every 5 to 10 minutes
    stage.close(outcome)
    assert.is_nil(invariants.cache_is_store(outcome))
    bench.tried("F5", 10)
  end)
end)
