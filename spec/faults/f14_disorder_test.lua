-- F14: events come twice, late, in another order between objects, and old ones again. The newest state of an object
-- counts; no cache goes back in time.
local bench = require "spec.faults.support.bench"
local host = require "cluster.host"
local invariants = require "spec.faults.support.invariants"
local scenarios = require "spec.faults.support.scenarios"
local stage = require "spec.faults.support.stage"
local streams_of = require "spec.faults.support.streams"
local virtual = require "cluster.world"

local SECONDS_MAX = 300


-- Small numbers, the same for a seed (Park and Miller).
local function numbers_of(seed)
  local state = seed * 48271 % 2147483647
  return function(n)
    state = state * 48271 % 2147483647
    return state % n
  end
end


-- The object of a line, as its uid: of one object the order is kept.
local function uid_of(line)
  return line:match '"uid":"([^"]+)"' or "bookmark"
end


-- Tells what waits in `relay`, in another order between objects, some of it twice.
local function tell(relay, random)
  local waiting = relay.waiting
  relay.waiting = {}
  for index = #waiting, 2, -1 do
    local other = index - 1
    if uid_of(waiting[index]) ~= uid_of(waiting[other]) and random(2) == 0 then
      waiting[index], waiting[other] = waiting[other], waiting[index]
    end
  end
  for _, line in ipairs(waiting) do
    for _ = 0, random(4) == 0 and 1 or 0 do
      relay:send(line)
    end
  end
end


-- Lines come after a while, those that came close to each other together. Bookmarks stay where they are.
local function disorder(streams, random, chance)
  function streams.on_line(relay, line)
    relay.waiting = relay.waiting or {}
    table.insert(relay.waiting, line)
    if not relay.timer then
      local seconds = random(chance) == 0 and random(SECONDS_MAX) or random(100) / 1000
      relay.timer = host.after(seconds, function()
        relay.timer = nil
        tell(relay, random)
      end)
    end
    return 0
  end
end


-- I5: versions of an object in the cache, as they come by.
local function note_versions(outcome)
  local newest, wrong = {}, nil
  return function()
    for _, entry in ipairs(virtual.cached()) do
      local revision = math.tointeger(entry.resourceVersion)
      local object = ("%s %s %s"):format(entry.kind, entry.key, entry.uid)
      if revision < (newest[object] or 0) and not wrong then
        wrong = ("%s went back from %d to %d"):format(object, newest[object], revision)
      end
      newest[object] = math.max(revision, newest[object] or 0)
    end
    outcome.went_back = wrong
  end
end


describe("Events", function()
  for _, scenario in ipairs(scenarios.all) do
    local reference = stage.play(scenario)

    for name, chance in pairs { ["a little"] = 1000, ["by minutes"] = 3 } do
      it(("late %s, twice and in another order make no difference: %s"):format(name, scenario.name), function()
        local count = bench.each_seed("F14", 10, function(seed)
          local random = numbers_of(seed)
          local streams = streams_of.new()
          disorder(streams, random, chance)
          local look
          local outcome = stage.open(scenario, function(request, reply, pass)
            if look then
              look()
            end
            streams.fault(request, reply, pass)
          end)
          look = note_versions(outcome)
          scenario.play(outcome.world)
          outcome.world.advance "1h"
          stage.close(outcome)
          assert.is_nil(outcome.went_back)
          invariants.check(outcome, reference, "seed " .. seed)
        end)
        bench.tried("F14", count)
      end)
    end
  end
end)
