-- F36: SIGTERM at each write: with time to end what is under way; with two seconds and a server that answers nothing
-- any more; and with a second signal at once. Another operator takes over. Exhaustive.
local bench = require "spec.faults.support.bench"
local host = require "cluster.host"
local invariants = require "spec.faults.support.invariants"
local scenarios = require "spec.faults.support.scenarios"
local stage = require "spec.faults.support.stage"
local virtual = require "cluster.world"

local ENDS = {
  ["time to end"] = function() virtual.stop(25) end,
  ["two seconds, and no answers"] = function(silence)
    virtual.stop(25)
    silence(true)
    host.after(2, function()
      silence(false)
      stage.kill()
    end)
  end,
  ["a second signal"] = function()
    virtual.stop(25)
    host.defer(function() virtual.stop(25) end)
  end,
}


local function play(scenario, index, signal)
  local told, is_silent = false, false
  local function silence(value)
    is_silent = value
  end
  return stage.play(scenario, function(request, reply, pass)
    if request.write == index and not told then
      told = true
      signal(silence)
    end
    pass(is_silent and not request.is_watch and stage.blind() or reply)
  end)
end


describe("SIGTERM", function()
  for _, scenario in ipairs(scenarios.all) do
    local reference = stage.play(scenario)
    for name, signal in pairs(ENDS) do
      it(("with %s loses nothing: at each write of %s"):format(name, scenario.name), function()
        for index = 1, #reference.writes do
          local outcome = play(scenario, index, signal)
          invariants.check(outcome, reference, ("SIGTERM at write %d, %s"):format(index, name))
        end
        bench.tried("F36", #reference.writes)
      end)
    end
  end
end)
