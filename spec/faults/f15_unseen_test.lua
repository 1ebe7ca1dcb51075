-- F15: changes that the operator never sees one by one, for its watches come to be cut and their history is gone: an
-- object deleted and made anew, one created and deleted. Exhaustive: every range of changes there is.
local bench = require "spec.faults.support.bench"
local host = require "cluster.host"
local invariants = require "spec.faults.support.invariants"
local scenarios = require "spec.faults.support.scenarios"
local stage = require "spec.faults.support.stage"
local streams_of = require "spec.faults.support.streams"


-- Hides the changes from `first` to `last`; what never gets as far as `last` is over at the scenario's end.
local function play(scenario, first, last)
  local streams = streams_of.new()
  local outcome = stage.open(scenario, streams.fault)
  local hidden = true
  stage.at_change(outcome, first - 1, function() streams:shut() end)
  stage.at_change(outcome, last, function()
    hidden = false
    host.defer(function() streams:lose() end)
  end)
  scenario.play(outcome.world)
  if hidden then
    streams:lose()
  end
  assert(streams.held > 0)
  return stage.close(outcome)
end


describe("Changes that are never seen", function()
  local function try(scenario, reference, first, last)
    local outcome = play(scenario, first, last)
    invariants.check(outcome, reference, ("changes %d to %d of %s hidden"):format(first, last, scenario.name))
  end

  it("make no difference: every range of a few", function()
    local scenario, count = scenarios.few, 0
    local reference = stage.play(scenario)
    for first = 1, reference.changes do
      for last = first, reference.changes do
        try(scenario, reference, first, last)
        count = count + 1
      end
    end
    bench.tried("F15", count)
  end)

  for _, scenario in ipairs(scenarios.all) do
    it("make no difference: each alone, and ranges, of " .. scenario.name, function()
      local reference = stage.play(scenario)
      for first = 1, reference.changes do
        try(scenario, reference, first, first)
      end
      local count = bench.each_seed("F15", 10, function(seed)
        local first = seed * 37 % reference.changes + 1
        try(scenario, reference, first, first + seed * 11 % 40)
      end)
      bench.tried("F15", reference.changes + count)
    end)
  end
end)
