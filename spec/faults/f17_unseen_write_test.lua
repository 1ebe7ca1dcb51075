-- F17: what the operator wrote does not come back to it, for a second, for minutes, for an hour: watches stand still
-- while everything else works. Exhaustive over the writes.
local bench = require "spec.faults.support.bench"
local host = require "cluster.host"
local invariants = require "spec.faults.support.invariants"
local scenarios = require "spec.faults.support.scenarios"
local stage = require "spec.faults.support.stage"
local streams_of = require "spec.faults.support.streams"

local TIMES = { ["a second"] = 1, ["five minutes"] = 300, ["an hour"] = 3600 }


-- From write `index` on no watch tells anything, for so many seconds.
local function play(scenario, index, seconds)
  local streams = streams_of.new()
  local outcome = stage.open(scenario, function(request, reply, pass)
    if request.write == index and streams.held == 0 then
      streams:shut()
      host.after(seconds, function() streams:open() end)
    end
    streams.fault(request, reply, pass)
  end)
  scenario.play(outcome.world)
  outcome.world.advance "1h"
  return stage.close(outcome), streams.held > 0
end


describe("A write that its cache does not show", function()
  for _, scenario in ipairs(scenarios.all) do
    local reference = stage.play(scenario)
    for name, seconds in pairs(TIMES) do
      it(("for %s is not written again: each write of %s"):format(name, scenario.name), function()
        local count = 0
        for index = 1, #reference.writes do
          local outcome, was_held = play(scenario, index, seconds)
          count = count + (was_held and 1 or 0) -- what changes nothing, and Events, no watch tells
          invariants.check(outcome, reference, ("nothing seen for %s after write %d"):format(name, index))
        end
        bench.tried("F17", count)
      end)
    end
  end
end)
