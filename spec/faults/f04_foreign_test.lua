-- F4: what a reconcile wants to create is there already, and belongs to somebody else or to nobody.
local bench = require "spec.faults.support.bench"
local host = require "cluster.host"
local invariants = require "spec.faults.support.invariants"
local scenarios = require "spec.faults.support.scenarios"
local stage = require "spec.faults.support.stage"

local PODS = "/api/v1/namespaces/default/pods"
local At, Pod = table.unpack(scenarios.cnat.kinds)


local function pod(name, owners)
  return {
    apiVersion = "v1", kind = "Pod", metadata = { name = name, ownerReferences = owners, finalizers = { "x.io/stay" } },
    spec = { restartPolicy = "Never", containers = { { name = "c", image = "busybox" } } },
  }
end


-- The At "other" as the controller of something.
local function other(world)
  world.apply(scenarios.at("other", 59))
  local uid = world.get(At, "other").metadata.uid
  return { { apiVersion = At.apiVersion, kind = At.kind, name = "other", uid = uid, controller = true } }
end


-- One At is due, and its pod's name is taken; another At is due as well.
local function play(owners_of)
  local outcome = stage.open(scenarios.cnat)
  local world = outcome.world
  local code, answer = outcome.server:call("POST", PODS, pod("taken-pod", owners_of(world)))
  assert(code == 201, answer.message)
  world.apply { scenarios.at("taken", 0), scenarios.at("free", 0) }
  world.advance "30m"
  return outcome, world, answer.metadata.uid
end


describe("A child's name that is taken", function()
  for what, owners_of in pairs { ["by another controller"] = other, ["by nobody"] = function() end } do
    it(what .. " is told, left alone, and asked for ever more rarely", function()
      local outcome, world, uid = play(owners_of)
      world.expect(At, "free", { status = { phase = "DONE" } })
      local meta = world.get(Pod, "taken-pod").metadata
      assert.equal(uid, meta.uid)
      assert.same(owners_of(world), meta.ownerReferences)
      assert.is_nil(meta.deletionTimestamp)
      local event = assert(world.events(At, "taken")[1], "nothing was told")
      assert.truthy(event.note:find("taken-pod", 1, true), event.note)
      local tries = 0
      for _, request in ipairs(outcome.requests) do
        tries = tries + (request.path:find("taken", 1, true) and not request.path:find("/events", 1, true) and 1 or 0)
      end
      assert.is_true(tries < 60, tries)
      assert.is_nil(invariants.right_object(outcome))
      bench.tried("F4", 1)
    end)

    it(what .. " is taken when it is free", function()
      local outcome, world = play(owners_of)
      local code = outcome.server:call("PATCH", PODS .. "/taken-pod", { metadata = { finalizers = host.json.null } },
        { content_type = "application/merge-patch+json" })
      assert.equal(200, code)
      world.delete(Pod, "taken-pod")
      world.advance "30m"
      world.expect(At, "taken", { status = { phase = "DONE" } })
      world.expect(Pod, "taken-pod", { metadata = { ownerReferences = { { kind = "At", name = "taken" } } } })
      bench.tried("F4", 1)
    end)
  end
end)
