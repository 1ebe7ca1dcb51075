-- F30: a script writes what time it is on each run, and so would run for ever. Checked: I8, it comes to rest or nearly
-- so; I9, its writes are bounded; I10, other keys and the edits of people do not wait for it.
local bench = require "spec.faults.support.bench"
local moonloop = require "moonloop"
local testing = require "moonloop.testing"

local Thing = moonloop.kind("example.com/v1", "Thing")
local ConfigMap = moonloop.kind("v1", "ConfigMap")

local FREE = 20 -- runs that wake themselves before the first pause

describe("A script that wakes itself", function()
  local world

  before_each(function()
    world = testing.world { scripts = "spec/faults/support/restless.lua", crds = "spec/testing/crds" }
  end)

  local function thing(name, mode)
    return { apiVersion = Thing.apiVersion, kind = Thing.kind, metadata = { name = name }, spec = { mode = mode } }
  end

  -- Of Things and ConfigMaps; Events are not the script's.
  local function writes()
    return #world.requests("patch", "/things/") + #world.requests("patch", "/configmaps/")
  end

  -- How many children the mode "steps" has made.
  local function steps_of(name)
    local count = 0
    for _, map in ipairs(world.list(ConfigMap)) do
      count = count + (map.metadata.name:find(name .. "-", 1, true) == 1 and 1 or 0)
    end
    return count
  end

  local function notes()
    local list = {}
    for _, event in ipairs(world.events(Thing, "a")) do
      if event.reason == "SelfTriggered" then
        list[#list + 1] = event.note
      end
    end
    return list
  end

  it("does not by its status, which is written once", function()
    world.apply(thing("a", "status"))
    world.advance "1h"
    assert.equal(1, writes())
    assert.same({}, notes())
    bench.tried("F30", 1)
  end)

  for mode, field in pairs {
    annotation = "Thing default/a: metadata.annotations[example.com/at]",
    child = "ConfigMap default/a: data.at",
    status_and_again = "Thing default/a: status.at",
  } do
    it(("by its %s is slowed, and told which field does it"):format(mode), function()
      world.apply(thing("a", mode))
      assert.is_true(writes() > FREE and writes() <= FREE + 3, ("%d writes at once"):format(writes()))
      world.advance "1s"
      assert.truthy(notes()[1]:find(field, 1, true), notes()[1])
      world.advance "1h"
      assert.is_true(writes() <= FREE + 16, ("%d writes in an hour"):format(writes()))
      local before = writes()
      world.advance "10h"
      assert.is_true(writes() - before <= 37, ("%d writes in ten hours"):format(writes() - before))
      bench.tried("F30", 1)
    end)

    it(("by its %s holds up neither its own object's edits nor other objects"):format(mode), function()
      world.apply(thing("a", mode))
      world.advance "20m"
      local before = writes()
      world.patch(Thing, "a", { metadata = { labels = { edited = "yes" } } })
      assert.equal(before + 1, writes())
      world.apply(thing("b", "steps"))
      assert.equal(30, steps_of "b")
      world.patch(Thing, "a", { spec = { mode = "none" } })
      before = writes()
      world.advance "10h"
      assert.equal(before, writes())
      bench.tried("F30", 1)
    end)
  end

  it("is forgiven when it is edited, and when it stops", function()
    world.apply(thing("a", "child"))
    world.advance "20m"
    world.patch(Thing, "a", { spec = { mode = "none" } })
    world.advance "1h"
    local before = writes()
    world.patch(Thing, "a", { spec = { mode = "child" } })
    assert.is_true(writes() - before > FREE, "the first runs of a new streak are free")
    bench.tried("F30", 1)
  end)

  it("does not when it goes on step by step", function()
    world.apply(thing("a", "steps"))
    assert.equal(30, steps_of "a")
    world.advance "1h"
    assert.equal(30, #world.requests("create", "/configmaps"))
    assert.same({}, notes())
    bench.tried("F30", 1)
  end)
end)
