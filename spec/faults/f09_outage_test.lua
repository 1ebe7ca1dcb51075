-- F9: the server answers 5xx for a while, is away for ten minutes, or comes and goes every five seconds. Caches keep
-- their objects, nothing is lost, and no kind is listed again more than once for each time that the server was away.
local bench = require "spec.faults.support.bench"
local host = require "cluster.host"
local invariants = require "spec.faults.support.invariants"
local scenarios = require "spec.faults.support.scenarios"
local stage = require "spec.faults.support.stage"

local CODES = { 500, 502, 503, 504 }
local KINDS_AND_KEYS = 8 -- of the larger scenario


-- The resource that a LIST is of, or nil for anything else.
local function listed(request)
  return request.method == "GET" and not request.is_watch and request.query:find "limit=" and request.path
end


-- Answers with the code while down() holds, and hangs up for code 0. Open watches end when it goes down.
local function outage(outcome, down, code)
  local open = {}
  local state = { requests = 0, lists = {} }
  outcome.fault = function(request, reply, pass)
    if down() then
      state.requests = state.requests + 1
      if code == 0 then
        return reply:abort()
      end
      return reply:send(code, "text/plain", "down")
    end
    local path = listed(request)
    if path then
      state.lists[path] = (state.lists[path] or 0) + 1
    elseif request.is_watch then
      open[#open + 1] = reply
    end
    pass(reply)
  end
  function state.cut()
    for _, reply in ipairs(open) do
      pcall(reply.abort, reply) -- those that have ended are none of ours
    end
    open = {}
  end
  return state
end


-- Plays a scenario on a server that is away for `away` seconds of each `cycle`, `times` times, from the third second
-- on.
local function play(scenario, code, away, cycle, times)
  local outcome = stage.open(scenario)
  local begun = host.now() + 3
  local function down()
    local at = host.now() - begun
    return at >= 0 and at < cycle * times and at % cycle < away
  end
  local state = outage(outcome, down, code)
  for round = 0, times - 1 do
    host.after(3 + round * cycle, state.cut)
  end
  scenario.play(outcome.world, outcome)
  stage.close(outcome)
  return outcome, state
end


local function check(outcome, state, reference, what, outages)
  invariants.check(outcome, reference, what)
  for path, count in pairs(state.lists) do
    local before = 0
    for _, request in ipairs(reference.requests) do
      before = before + (listed(request) == path and 1 or 0)
    end
    assert.is_true(count <= before + outages, ("%s: %s was listed %d times"):format(what, path, count))
  end
end


describe("A server that is away", function()
  for _, scenario in ipairs(scenarios.all) do
    local reference = stage.play(scenario)

    for _, code in ipairs { 0, table.unpack(CODES) } do
      it(("for half a minute, with %d, costs nothing but time: %s"):format(code, scenario.name), function()
        local outcome, state = play(scenario, code, 30, 30, 1)
        check(outcome, state, reference, ("30 s of %d"):format(code), 1)
        bench.tried("F9", state.requests)
      end)

      it(("for ten minutes, with %d, is asked seldom: %s"):format(code, scenario.name), function()
        local outcome, state = play(scenario, code, 600, 600, 1)
        check(outcome, state, reference, ("600 s of %d"):format(code), 1)
        -- One request a second at most looks whether anybody answers. Each kind and key has a pause of its own besides,
        -- that doubles up to half a minute or a quarter of an hour: at most 17 tries of each.
        assert.is_true(state.requests <= 600 + 17 * KINDS_AND_KEYS, state.requests)
        bench.tried("F9", state.requests)
      end)

      it(("5 s of every 10 s, for ten minutes, with %d: %s"):format(code, scenario.name), function()
        local outcome, state = play(scenario, code, 5, 10, 60)
        check(outcome, state, reference, ("flapping with %d"):format(code), 60)
        assert.is_true(state.requests < 60 * 40, state.requests)
        bench.tried("F9", state.requests)
      end)
    end
  end
end)
