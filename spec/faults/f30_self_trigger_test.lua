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

  -- Of Things and ConfigMaps, without Conflicts; Events are not the script's.
  local function writes()
    local count = 0
    for _, path in ipairs { "/things/", "/configmaps/" } do
      for _, request in ipairs(world.requests("patch", path)) do
        count = count + (request.code < 300 and 1 or 0)
      end
    end
    return count
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

  local function metric_slowed()
    local count = 0
    for _, event in ipairs(world.events(Thing)) do
      count = count + ((event.reason == "SelfTriggered" or event.reason == "ControllersFight") and 1 or 0)
    end
    return count
  end

  it("through the status of a Deployment is slowed, whatever others write between", function()
    world.apply(thing("a", "rollout"))
    world.advance "5s"
    local field = "Deployment default/a: spec.template.metadata.annotations[example.com/of]"
    assert.truthy((notes()[1] or ""):find(field, 1, true), notes()[1])
    world.advance "1h"
    local before = #world.requests("patch", "/deployments/")
    assert.is_true(before <= 2 * FREE, ("%d writes in an hour"):format(before))
    world.advance "10h"
    assert.is_true(#world.requests("patch", "/deployments/") - before <= 2 * FREE)
    bench.tried("F30", 1)
  end)

  it("does not when it writes down how far a hundred pods are, again and again", function()
    world.apply(thing("a", "progress"))
    world.advance "10s"
    for version = 1, 3 do
      world.patch(Thing, "a", { metadata = { labels = { version = tostring(version) } } })
      world.advance "20s"
    end
    world.expect(ConfigMap, "a", { data = { ready = "100/100" } })
    assert.equal(0, metric_slowed())
    bench.tried("F30", 1)
  end)

  it("does not when it counts by the second", function()
    world.apply(thing("a", "counter"))
    world.advance "10m"
    assert.is_true(#world.requests("patch", "/things/") >= 590)
    assert.equal(0, metric_slowed())
    bench.tried("F30", 1)
  end)

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

  it("slows three objects that patch a fourth in turn, and names the other one", function()
    world.apply { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "shared" }, data = { by = "nobody" } }
    for _, name in ipairs { "a", "b", "c" } do
      world.apply(thing(name, "shared"))
    end
    world.advance "5s"
    local note = ""
    for _, event in ipairs(world.events(Thing, "a")) do
      note = event.reason == "ControllersFight" and event.note or note
    end
    assert.truthy(note:find("ConfigMap default/shared: data.by", 1, true), note)
    assert.truthy(note:find("the same controller for Thing default/[bc]"), note)
    world.advance "1h"
    assert.is_true(writes() <= 6 * FREE, ("%d writes in an hour"):format(writes()))
    bench.tried("F30", 1)
  end)

  it("slows who changes back what another client changes, and names its field manager", function()
    world.apply { apiVersion = "v1", kind = "ConfigMap", metadata = { name = "shared" }, data = { by = "nobody" } }
    world.apply(thing("a", "back"))
    for turn = 1, 100 do
      world.patch(ConfigMap, "shared", { data = { by = "turn " .. turn } })
      world.advance "50ms"
    end
    local note = ""
    for _, event in ipairs(world.events(Thing, "a")) do
      note = event.reason == "ControllersFight" and event.note or note
    end
    assert.truthy(note:find("ConfigMap default/shared: data.by", 1, true), note)
    assert.truthy(note:find("field manager ", 1, true), note)
    assert.is_true(writes() <= 2 * FREE, ("%d writes in 5 s"):format(writes()))
    world.advance "1m"
    world.expect(ConfigMap, "shared", { data = { by = "restless" } })
    bench.tried("F30", 1)
  end)

  it("slows who changes back a status that another client changes, and names that client, not itself", function()
    world.apply(thing("a", "status_back"))
    for turn = 1, 100 do
      world.patch(Thing, "a", { status = { by = "turn " .. turn } }, "status")
      world.advance "50ms"
    end
    local note = ""
    for _, event in ipairs(world.events(Thing, "a")) do
      note = event.reason == "ControllersFight" and event.note or note
    end
    assert.truthy(note:find("Thing default/a: status.by", 1, true), note)
    assert.truthy(note:find("field manager moonloop-test ", 1, true), note)
    bench.tried("F30", 1)
  end)

  it("names no other side when its own write of the status was the last one", function()
    world.apply(thing("a", "status_back"))
    for turn = 1, 100 do
      world.patch(Thing, "a", { status = { by = "turn " .. turn } }, "status")
    end
    world.advance "1h"
    local note = ""
    for _, event in ipairs(world.events(Thing, "a")) do
      note = event.reason == "ControllersFight" and event.note or note
    end
    assert.truthy(note:find("and another client change the same field", 1, true), note)
    bench.tried("F30", 1)
  end)
end)
