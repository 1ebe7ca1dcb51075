-- F21: the API server does not know us any more: for one request, whichever it is, and for half an hour. Here the work
-- must survive; f21_files.c and spec/e2e/auth_spec.lua test which credentials are shown instead.
local bench = require "spec.faults.support.bench"
local invariants = require "spec.faults.support.invariants"
local scenarios = require "spec.faults.support.scenarios"
local stage = require "spec.faults.support.stage"

local UNAUTHORIZED = '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized",'
  .. '"reason":"Unauthorized","code":401}'


local function refuse(reply)
  reply:send(401, "application/json", UNAUTHORIZED)
end


-- Plays; the request `index` of all is refused. Returns the outcome, and true if there were so many requests.
local function play_refusing(scenario, index)
  local count, refused = 0, false
  local outcome = stage.play(scenario, function(_, reply, pass)
    count = count + 1
    refused = refused or count == index
    if count == index then
      refuse(reply)
    else
      pass(reply)
    end
  end)
  return outcome, refused
end


describe("A refusal (401)", function()
  for _, scenario in ipairs(scenarios.all) do
    it("of any one request changes nothing: " .. scenario.name, function()
      local reference = stage.play(scenario)
      for index = 1, #reference.requests do
        local outcome, refused = play_refusing(scenario, index)
        assert.is_true(refused)
        invariants.check(outcome, reference, ("request %d refused"):format(index))
      end
      bench.tried("F21", #reference.requests)
    end)

    it("of all for half an hour is no hot loop, and is made up for: " .. scenario.name, function()
      local reference = stage.play(scenario)
      local minutes, refused = {}, 0
      local outcome = stage.open(scenario, function(request, reply)
        local minute = math.tointeger(request.at // 60)
        minutes[minute] = (minutes[minute] or 0) + 1
        refused = refused + 1
        refuse(reply)
      end)
      outcome.fault, outcome.refuse = nil, outcome.fault
      local advance, steps = outcome.world.advance, 0
      -- In the middle of the play.
      outcome.world.advance = function(duration)
        steps = steps + 1
        if steps == 2 then
          outcome.fault = outcome.refuse
          advance "30m"
          outcome.fault = nil
        end
        advance(duration)
      end
      scenario.play(outcome.world, outcome)
      outcome.world.advance = advance
      stage.close(outcome)
      for minute, count in pairs(minutes) do
        assert.is_true(count <= 120, ("%d requests in minute %d"):format(count, minute))
      end
      assert.is_true(refused >= 10, refused)
      invariants.check(outcome, reference, "refused for half an hour", { few_writes = true })
      bench.tried("F21", refused)
    end)
  end
end)
