-- Writes that the server takes and changes: what it left out, added or wrote differently is not written again at
-- each run, and a field that it leaves out is named.
local moonloop = require "moonloop"
local testing = require "moonloop.testing"

local Gauge = moonloop.kind("example.com/v1", "Gauge")

local function world_of(mode)
  local world = testing.world {
    scripts = "spec/testing/unkept/gauge.lua", crds = "spec/testing/unkept/crds", now = "2026-07-01T10:00:00Z",
  }
  world.apply {
    apiVersion = Gauge.apiVersion, kind = Gauge.kind, metadata = { name = "a" }, spec = { mode = mode, tick = 1 },
  }
  return world
end


local function writes(world)
  return #world.requests("patch") + #world.requests("apply") + #world.requests("create") + #world.requests("update")
end


-- Calls the script again, which returns the same. Only the object's label is a write.
local function run_again(world, index)
  world.patch(Gauge, "a", { metadata = { labels = { run = tostring(index) } } })
end


local function notes(world, reason)
  local found = {}
  for _, event in ipairs(world.events(Gauge, "a")) do
    found[#found + 1] = event.reason == reason and event.note or nil
  end
  return found
end


describe("A write that the server changes", function()
  for _, mode in ipairs {
    "misspelt", "clock", "inner", "defaults", "both", "conditions", "patch", "ensure", "apply", "children",
  } do
    it(("(%s) is not sent again by runs that come to the same result"):format(mode), function()
      local world = world_of(mode)
      world.expect(Gauge, "a", { status = { phase = "FINE" } })
      run_again(world, 0)
      local before = writes(world)
      for index = 1, 10 do
        run_again(world, index)
      end
      assert.equal(before, writes(world))
    end)
  end

  it("names the fields that are left out, once, and says what to do", function()
    for mode, field in pairs { misspelt = "status.phse", inner = "status.marks[].colour",
      conditions = "status.conditions" } do
      local world = world_of(mode)
      for index = 1, 3 do
        run_again(world, index)
      end
      local said = notes(world, "StatusNotKept")
      assert.equal(1, #said, mode)
      assert.equal(("the API server leaves out %s, which the schema of Gauge does not have; correct the name in "
        .. "gauge.lua, or add the field to the CRD"):format(field), said[1])
    end
  end)

  it("names the fields that have another value", function()
    local world = world_of "defaults"
    for index = 1, 3 do
      run_again(world, index)
    end
    local said = notes(world, "StatusNotKept")
    assert.equal(2, #said) -- the unit is there from the first write on
    assert.matches("keeps another value than gauge.lua returned in status.marks%[%].color ", said[1])
    assert.matches("keeps another value than gauge.lua returned in status.unit ", said[2])
  end)

  it("says nothing of a status that is kept", function()
    local world = world_of "ensure"
    assert.same({}, notes(world, "StatusNotKept"))
  end)

  it("is sent with what differs beside it", function()
    local world = world_of "both"
    world.patch(Gauge, "a", { spec = { tick = 2 } })
    world.expect(Gauge, "a", { status = { tick = 2 } })
  end)

  it("takes nobody's edit for its own: what somebody else changed is put right", function()
    local world = world_of "both"
    run_again(world, 1)
    world.patch(Gauge, "a", { status = { phase = "BAD", tick = 7 } }, "status")
    run_again(world, 2)
    world.expect(Gauge, "a", { status = { phase = "FINE", tick = 1 } })
  end)

  it("is sent again some minutes later, as the schema may have the field by then", function()
    local world = world_of "misspelt"
    local crd = world.get(moonloop.kind("apiextensions.k8s.io/v1", "CustomResourceDefinition"), "gauges.example.com")
    local versions = crd.spec.versions
    versions[1].schema.openAPIV3Schema.properties.status.properties.phse = { type = "string" }
    world.patch(moonloop.kind("apiextensions.k8s.io/v1", "CustomResourceDefinition"), "gauges.example.com",
      { spec = { versions = versions } })
    world.advance "11m"
    run_again(world, 1)
    world.expect(Gauge, "a", { status = { phse = "FINE" } })
  end)
end)
