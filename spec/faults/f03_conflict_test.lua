-- F3: between what a reconcile read and what it writes of it somebody else changes the object: a few times, at each
-- write there is, and for ever.
local bench = require "spec.faults.support.bench"
local host = require "cluster.host"
local invariants = require "spec.faults.support.invariants"
local scenarios = require "spec.faults.support.scenarios"
local stage = require "spec.faults.support.stage"

local MERGE = "application/merge-patch+json"
local CONFLICT = '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Conflict","code":409,'
  .. '"message":"the object has been modified; please apply your changes to the latest version and try again"}'
local MARK = { metadata = { labels = { somebody = nil } } }


local function is_guarded(request)
  return request.raw.headers["content-type"] == MERGE and not request.path:find("/events/", 1, true)
end


local function change(server, path, value)
  MARK.metadata.labels.somebody = value
  local code = server:call("PATCH", path:gsub("/status$", ""), MARK, { content_type = MERGE })
  assert(code == 200 or code == 404, code)
end


-- Plays; changes the object of write `index`, and `times` - 1 of the next of it, just before it is written.
local function play(scenario, index, times)
  local path, left = nil, times
  local outcome
  outcome = stage.open(scenario, function(request, reply, pass)
    path = path or request.write == index and request.path
    if path == request.path and left > 0 and is_guarded(request) then
      left = left - 1
      change(outcome.server, path, ("%d"):format(left))
    end
    pass(reply)
  end)
  scenario.play(outcome.world, outcome)
  change(outcome.server, path, host.json.null)
  return stage.close(outcome)
end


describe("A conflict", function()
  for _, scenario in ipairs(scenarios.writing) do
    local reference = stage.play(scenario)
    for times = 1, 3 do
      it(("%d times over is tried again with what is new: each write of %s"):format(times, scenario.name), function()
        local count = 0
        for index, request in ipairs(reference.writes) do
          if is_guarded(request) then
            local outcome = play(scenario, index, times)
            invariants.check(outcome, reference, ("%d conflicts from write %d on"):format(times, index))
            count = count + 1
          end
        end
        bench.tried("F3", count)
      end)
    end
  end

  it("for ever costs one key, and few requests", function()
    local scenario = scenarios.cnat
    local reference = stage.play(scenario)
    local path = "/apis/cnat.programming-kubernetes.info/v1alpha1/namespaces/default/ats/waits/status"
    local refused = 0
    local outcome = stage.open(scenario, function(request, reply, pass)
      if request.path == path then
        refused = refused + 1
        reply:send(409, "application/json", CONFLICT)
      else
        pass(reply)
      end
    end)
    scenario.play(outcome.world, outcome)
    for _, name in ipairs { "overdue", "edited", "early", "late" } do
      outcome.world.expect(scenario.kinds[1], name, { status = { phase = "DONE" } })
    end
    -- 5 ms, doubled each time, are 16 in the seven minutes that are left; twice, for it waits for two things.
    assert.is_true(refused >= 10 and refused <= 40, refused)
    outcome.fault = nil
    stage.close(outcome)
    invariants.check(outcome, reference, "conflicts for ten minutes")
    bench.tried("F3", refused)
  end)
end)
