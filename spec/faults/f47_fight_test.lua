-- F47: two controllers of one process want different values in the same field, and so would write for ever. Checked:
-- I9, their writes are bounded; I10, other objects and the edits of people do not wait; both and the field are named.
local bench = require "spec.faults.support.bench"
local moonloop = require "moonloop"
local testing = require "moonloop.testing"

local Thing = moonloop.kind("example.com/v1", "Thing")

local FREE = 20 -- rounds before the first pause
local EARLY = { status = true, other = true, deployment = true } -- fields that hold no requests: four rounds

describe("Two controllers that change the same field in turn", function()
  local world

  before_each(function()
    world = testing.world {
      scripts = { "spec/faults/support/rival_a.lua", "spec/faults/support/rival_b.lua" }, crds = "spec/testing/crds",
    }
  end)

  local function thing(name, mode)
    return { apiVersion = Thing.apiVersion, kind = Thing.kind, metadata = { name = name }, spec = { mode = mode } }
  end

  -- Of Things and ConfigMaps; Events are not the scripts'.
  local function writes()
    local count = 0
    for _, verb in ipairs { "create", "patch", "delete" } do
      for _, path in ipairs { "/things/", "/configmaps", "/deployments" } do
        for _, request in ipairs(world.requests(verb, path)) do
          count = count + (request.code < 300 and 1 or 0)
        end
      end
    end
    return count
  end

  local function notes()
    local list = {}
    for _, event in ipairs(world.events(Thing, "x")) do
      if event.reason == "ControllersFight" then
        list[#list + 1] = event.note
      end
    end
    return list
  end

  for mode, field in pairs {
    status = "Thing default/x: status.by",
    annotation = "Thing default/x: metadata.annotations[example.com/by]",
    other = "ConfigMap default/x: data.by",
    deployment = "Deployment default/x: spec.replicas",
    existence = "ConfigMap default/x",
  } do
    it(("by %s are slowed, and both and the field are named"):format(mode), function()
      world.apply(thing("x", mode))
      local least, most = EARLY[mode] and 6 or FREE, EARLY[mode] and FREE or 4 * FREE
      assert.is_true(writes() > least and writes() <= most, ("%d writes at once"):format(writes()))
      world.advance "5s"
      local note = notes()[1] or "no Event"
      for _, part in ipairs { "rival-a", "rival-b", field } do
        assert.truthy(note:find(part, 1, true), note)
      end
      world.advance "1h"
      assert.is_true(writes() <= 4 * FREE + 60, ("%d writes in an hour"):format(writes()))
      local before = writes()
      world.advance "10h"
      assert.is_true(writes() - before <= 160, ("%d writes in ten hours"):format(writes() - before))
      bench.tried("F47", 1)
    end)

    it(("by %s hold up neither edits nor other objects"):format(mode), function()
      world.apply(thing("x", mode))
      world.advance "20m"
      world.apply(thing("y", "apart"))
      world.expect(Thing, "y", { status = { a = "apart", b = "apart", seen = "both" } })
      world.patch(Thing, "x", { spec = { mode = "apart" } })
      world.expect(Thing, "x", { status = { a = "apart", b = "apart", seen = "both" } })
      local before = writes()
      world.advance "10h"
      assert.equal(before, writes())
      bench.tried("F47", 1)
    end)
  end

  it("is not what controllers do that write fields of their own", function()
    world.apply(thing("x", "apart"))
    world.advance "1h"
    world.expect(Thing, "x", { status = { a = "apart", b = "apart", seen = "both" } })
    assert.same({}, notes())
    bench.tried("F47", 1)
  end)
end)
