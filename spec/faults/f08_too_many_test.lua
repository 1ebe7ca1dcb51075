-- F8: the server is overloaded and answers 429, with every sort of Retry-After there is. The process as a whole keeps
-- quiet for as long as it was asked to, within a second and a minute, and loses nothing.
local bench = require "spec.faults.support.bench"
local collections = require "spec.faults.support.collections"
local host = require "cluster.host"
local invariants = require "spec.faults.support.invariants"
local scenarios = require "spec.faults.support.scenarios"
local stage = require "spec.faults.support.stage"

-- A server that has too much to do: no Status (apiserver's server/filters, tooManyRequests).
local TOO_MANY = "Too many requests, please try again later.\n"

-- One that cannot serve a resource for a while, after its CRD was edited.
local REINITIALIZING = '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"TooManyRequests",'
  .. '"code":429,"message":"storage is (re)initializing","details":{"retryAfterSeconds":1}}'

-- The header, and the seconds that must pass without a request.
local VALUES = {
  { "none", nil, 1 }, { "0", "0", 1 }, { "1", "1", 1 }, { "7", "7", 7 }, { "1e9 as a number", "1000000000", 60 },
  { "beyond any integer", "99999999999999999999999", 1 }, { "a date", "Fri, 03 Jul 2026 10:00:30 GMT", 1 },
  { "garbage", "soon", 1 }, { "below zero", "-5", 1 }, { "empty", "", 1 }, { "a fraction", "1.5", 1 },
}


-- Plays; request `index` of the operator and all within `burst` seconds after it are refused.
local function play(scenario, index, burst, header)
  local refused_at, quiet_till, refused_till, broken
  local outcome = stage.open(scenario)
  outcome.fault = function(request, reply, pass)
    local now = host.now()
    -- Requests already under way when the answer came are no breach.
    if quiet_till and now > refused_at and now < quiet_till and not broken then
      broken = ("%s %s was sent %.3f s before the pause was over"):format(request.method, request.path,
        quiet_till - now)
    end
    if #outcome.requests == index then
      refused_till = now + burst
    end
    if refused_till and now <= refused_till then
      refused_at, quiet_till = now, now + header[3]
      return reply:send(429, "text/plain; charset=utf-8", TOO_MANY, header[2] and { ["Retry-After"] = header[2] } or {})
    end
    pass(reply)
  end
  scenario.play(outcome.world, outcome)
  outcome.fault = nil
  stage.close(outcome)
  assert(not broken, broken)
  return outcome
end


describe("A server that answers 429", function()
  for _, scenario in ipairs(scenarios.all) do
    local reference = stage.play(scenario)
    for _, header in ipairs(VALUES) do
      it(("with a Retry-After of %s is left in peace: %s"):format(header[1], scenario.name), function()
        local count = 0
        for index = 1, #reference.requests, math.max(1, #reference.requests // 5) do
          local outcome = play(scenario, index, index % 3 * 20, header)
          invariants.check(outcome, reference, ("429 from request %d on"):format(index))
          count = count + 1
        end
        bench.tried("F8", count)
      end)
    end
  end
end)


describe("A kind that is not served for a while", function()
  for _, scenario in ipairs(scenarios.all) do
    local reference = stage.play(scenario)
    for _, kind in ipairs(scenario.kinds) do
      it(("holds up nothing but itself: %s of %s"):format(kind.kind, scenario.name), function()
        local count = 0
        for index = 1, #reference.requests, math.max(1, #reference.requests // 5) do
          local refused_till, refused, others = nil, 0, 0
          local outcome
          outcome = stage.open(scenario, function(request, reply, pass)
            local is_of = outcome and collections.is_of(outcome.server, request, kind)
            if outcome and #outcome.requests == index then
              refused_till = host.now() + 10
            end
            local refuses = refused_till and host.now() <= refused_till
            if refuses and is_of then
              refused = refused + 1
              return reply:send(429, "application/json", REINITIALIZING, { ["Retry-After"] = "1" })
            end
            others = others + (refuses and 1 or 0)
            pass(reply)
          end)
          scenario.play(outcome.world, outcome)
          stage.close(outcome)
          invariants.check(outcome, reference, ("429 of one kind from request %d on"):format(index))
          count = count + (refused + others > 0 and 1 or 0)
        end
        bench.tried("F8", count)
      end)
    end
  end
end)
