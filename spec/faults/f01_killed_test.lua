-- F1: the operator is killed at each of its writes: before it is sent, after it took effect and before the reply is
-- there, and after the reply. Exhaustive.
local bench = require "spec.faults.support.bench"
local host = require "cluster.host"
local invariants = require "spec.faults.support.invariants"
local scenarios = require "spec.faults.support.scenarios"
local stage = require "spec.faults.support.stage"

local POINTS = {
  ["before it is sent"] = function(_, _) stage.kill() end,
  ["before its reply"] = function(pass, _)
    pass(stage.blind())
    stage.kill()
  end,
  ["after its reply"] = function(pass, reply)
    pass(reply)
    host.defer(stage.kill) -- which comes when the reply has been read
  end,
}


local function play_with_kill(scenario, index, kill)
  local killed = false
  local outcome = stage.play(scenario, function(request, reply, pass)
    if request.write == index and not killed then
      killed = true
      kill(pass, reply)
    else
      pass(reply)
    end
  end)
  assert(killed, "never got there")
  return outcome
end


describe("An operator that is killed", function()
  for _, scenario in ipairs(scenarios.writing) do
    local reference = stage.play(scenario)
    for point, kill in pairs(POINTS) do
      it(("%s leaves nothing undone and does nothing twice: each write of %s"):format(point, scenario.name), function()
        for index = 1, #reference.writes do
          local outcome = play_with_kill(scenario, index, kill)
          invariants.check(outcome, reference, ("killed at write %d, %s"):format(index, point))
        end
        bench.tried("F1", #reference.writes)
      end)
    end
  end
end)
