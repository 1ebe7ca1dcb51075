-- F12: a watch that falls silent: the server goes on, and nothing of it arrives any more, not even an end. With each
-- kind and at each of many moments; what was missed is there within the time of a bookmark and its tolerance. (A server
-- in another process is asked to end each watch after 20 s: test_reflector_watch.c, and spec/e2e.)
local bench = require "spec.faults.support.bench"
local invariants = require "spec.faults.support.invariants"
local scenarios = require "spec.faults.support.scenarios"
local stage = require "spec.faults.support.stage"
local collections = require "spec.faults.support.collections"

local WITHIN = 81 -- seconds: a bookmark each 60, 15 more for it to come, up to 5 by chance, and the answer


-- Plays; from the moment `after` seconds past the first watch of `kind` that watch is silent, and all later ones work.
local function play(scenario, kind, after)
  local gate = { silent = false }
  local resumed
  local outcome
  outcome = stage.open(scenario, function(request, reply, pass)
    if request.is_watch and outcome and collections.is_of(outcome.server, request, kind) then
      if gate.silent then
        resumed = resumed or request.at
        gate = { silent = false }
      end
      return pass(collections.gated(reply, gate))
    end
    pass(reply)
  end)
  collections.cut(outcome.server, kind) -- the watch of the start went by before there was a gate
  outcome.world.advance(("%ds"):format(after + 2))
  gate.silent = true
  local silenced = outcome.world.now()
  scenario.play(outcome.world, outcome)
  return stage.close(outcome), resumed and resumed - silenced
end


describe("A watch that falls silent", function()
  for _, scenario in ipairs(scenarios.all) do
    local reference = stage.play(scenario)
    for _, kind in ipairs(scenario.kinds) do
      it(("is left within %d seconds: %s of %s"):format(WITHIN, kind.kind, scenario.name),
        function()
          local count = 0
          for after = 0, 240, 12 do
            local outcome, took = play(scenario, kind, after)
            local what = ("silent %d seconds after the start"):format(after)
            assert.is_true(took and took <= WITHIN, ("%s: %s"):format(what, took))
            for _, name in ipairs { "at_rest", "cache_is_store", "right_object", "once" } do
              local wrong = invariants[name](outcome, reference)
              assert.is_nil(wrong, what .. ": " .. tostring(wrong))
            end
            count = count + 1
          end
          bench.tried("F12", count)
        end)
    end
  end
end)
