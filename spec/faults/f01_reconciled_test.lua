-- F1 for the condition Reconciled: the operator is killed at each write of a scenario whose reconciles fail, before it
-- is sent and before its reply is there. It ends with the same conditions, and says nothing twice.
local bench = require "spec.faults.support.bench"
local invariants = require "spec.faults.support.invariants"
local moonloop = require "moonloop"
local stage = require "spec.faults.support.stage"

local Work = moonloop.kind("example.com/v1", "Work")
local ConfigMap = moonloop.kind("v1", "ConfigMap")

local function work(name, mode)
  return { apiVersion = Work.apiVersion, kind = Work.kind, metadata = { name = name }, spec = { mode = mode } }
end


local SCENARIO = {
  name = "work",
  kinds = { Work, ConfigMap },
  options = {
    scripts = "spec/testing/conditions/work.lua", crds = "spec/testing/conditions/crds",
    now = "2026-07-03T10:00:00Z",
  },
  play = function(world)
    world.apply { work("a", "refused"), work("b", "invalid"), work("c", "odd") }
    world.advance "2s"
    world.apply { work("a", "fine"), work("b", "terminal"), work("c", "fine") }
    world.advance "1m"
  end,
}

local POINTS = {
  ["before it is sent"] = function(_, _) stage.kill() end,
  ["before its reply"] = function(pass, _)
    pass(stage.blind())
    stage.kill()
  end,
}


describe("An operator that is killed while its reconciles fail", function()
  local reference = stage.play(SCENARIO)
  for point, kill in pairs(POINTS) do
    it(("%s says of each object what it would have said"):format(point), function()
      assert.is_true(#reference.writes >= 8)
      for index = 1, #reference.writes do
        local killed = false
        local outcome = stage.play(SCENARIO, function(request, reply, pass)
          if request.write == index and not killed then
            killed = true
            kill(pass, reply)
          else
            pass(reply)
          end
        end)
        assert(killed, "never got there")
        invariants.check(outcome, reference, ("killed at write %d, %s"):format(index, point))
      end
      bench.tried("F1", #reference.writes)
    end)
  end
end)
