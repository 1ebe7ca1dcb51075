-- F2: a write took effect, and its reply does not arrive: the connection breaks, nothing comes, or something on the way
-- says 502 or 504. Exhaustive over the writes.
local bench = require "spec.faults.support.bench"
local invariants = require "spec.faults.support.invariants"
local scenarios = require "spec.faults.support.scenarios"
local stage = require "spec.faults.support.stage"

local GATEWAY = "<html><body><h1>Bad Gateway</h1></body></html>"
local TIMEOUT = '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Timeout","code":504,'
  .. '"message":"Timeout: request did not complete within the allotted timeout"}'

local ENDS = {
  ["cut"] = function(reply) reply:abort() end,
  ["silence"] = function() end,
  ["a 502"] = function(reply) reply:send(502, "text/html", GATEWAY) end,
  ["a 504"] = function(reply) reply:send(504, "application/json", TIMEOUT) end,
}


-- Strikes the writes from `first` to `last`.
local function play(scenario, first, last, end_with)
  return stage.play(scenario, function(request, reply, pass)
    if request.write and request.write >= first and request.write <= last then
      pass(stage.blind())
      end_with(reply)
    else
      pass(reply)
    end
  end)
end


describe("A write whose reply is lost", function()
  for _, scenario in ipairs(scenarios.writing) do
    local reference = stage.play(scenario)
    for name, end_with in pairs(ENDS) do
      it(("to %s is done once: each write of %s"):format(name, scenario.name), function()
        for index = 1, #reference.writes do
          local outcome = play(scenario, index, index, end_with)
          invariants.check(outcome, reference, ("%s for write %d"):format(name, index))
        end
        bench.tried("F2", #reference.writes)
      end)

      it(("to %s is done once: ranges of writes of %s"):format(name, scenario.name), function()
        local count = bench.each_seed("F2", 3, function(seed)
          local first = seed * 7 % #reference.writes + 1
          local outcome = play(scenario, first, first + seed, end_with)
          invariants.check(outcome, reference, ("%s for writes %d to %d"):format(name, first, first + seed))
        end)
        bench.tried("F2", count)
      end)
    end
  end
end)
