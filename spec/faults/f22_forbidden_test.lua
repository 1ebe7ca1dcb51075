-- F22: the right to list and watch one kind is taken away, at each moment of a scenario, and given back later.
local bench = require "spec.faults.support.bench"
local invariants = require "spec.faults.support.invariants"
local scenarios = require "spec.faults.support.scenarios"
local stage = require "spec.faults.support.stage"
local collections = require "spec.faults.support.collections"
local virtual = require "cluster.world"

local FORBIDDEN = collections.status(403, "Forbidden")


-- Plays without the right to list and watch `kind` from write `index` on; gives it back `minutes` after the end.
local function play(scenario, kind, index, minutes)
  local denied, asked = false, 0
  local outcome
  outcome = stage.open(scenario, function(request, reply, pass)
    if request.write == index then
      denied = true
      collections.cut(outcome.server, kind)
    end
    if denied and outcome and collections.is_of(outcome.server, request, kind) then
      asked = asked + 1
      return reply:send(403, "application/json", FORBIDDEN)
    end
    pass(reply)
  end)
  scenario.play(outcome.world, outcome)
  outcome.world.advance(("%dm"):format(minutes))
  denied = false
  return stage.close(outcome), asked
end


describe("A right that is taken away", function()
  for _, scenario in ipairs(scenarios.all) do
    local reference = stage.play(scenario)
    for _, kind in ipairs(scenario.kinds) do
      it(("costs a request every ten seconds after a minute, and nothing when it is back: %s of %s"):format(
        kind.kind, scenario.name), function()
        local count = 0
        for index = 1, #reference.writes, 2 do
          local outcome, asked = play(scenario, kind, index, 5)
          local what = ("no %s from write %d on"):format(kind.kind, index)
          -- The scenario takes less than 11 minutes, and 5 more follow: 16 times 6, and a few at the start.
          assert.is_true(asked >= 50 and asked <= 150, what .. ": asked " .. asked .. " times")
          invariants.check(outcome, reference, what, { few_writes = true })
          count = count + 1
        end
        bench.tried("F22", count)
      end)
    end
  end

  it("stops what needs the kind, and nothing else", function()
    local scenario = {
      kinds = { scenarios.cnat.kinds[1], scenarios.cnat.kinds[2], scenarios.thing.kinds[1] },
      options = {
        scripts = { "reconcilers/cnat.lua", "spec/faults/support/thing.lua" }, crds = { "crds", "spec/testing/crds" },
        now = "2026-07-03T10:00:00Z", pods = "succeed",
      },
    }
    local At, _, Thing = table.unpack(scenario.kinds)
    local denied = false
    local outcome
    outcome = stage.open(scenario, function(request, reply, pass)
      if denied and collections.is_of(outcome.server, request, Thing) then
        return reply:send(403, "application/json", FORBIDDEN)
      end
      pass(reply)
    end)
    local world = outcome.world
    denied = true
    collections.cut(outcome.server, Thing)
    world.advance "1m"
    world.apply(scenarios.at("x", 0))
    world.advance "2s"
    world.expect(At, "x", { status = { phase = "DONE" } })
    local ready = virtual.ready()
    assert.truthy(type(ready) == "string" and ready:find("things", 1, true), tostring(ready))
    denied = false
    world.advance "15s"
    assert.is_true(virtual.ready())
    bench.tried("F22", 1)
  end)
end)
