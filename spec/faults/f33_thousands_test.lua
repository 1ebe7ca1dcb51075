-- F33: hundreds of objects that are due in the same second, or over a week in which the operator was down: each is
-- served once, none is missed. With the queue alone, in f33_timers.c, it is a million.
local bench = require "spec.faults.support.bench"
local host = require "cluster.host"
local invariants = require "spec.faults.support.invariants"
local scenarios = require "spec.faults.support.scenarios"
local stage = require "spec.faults.support.stage"
local virtual = require "cluster.world"

local COUNT = 300
local START = 1783072800 -- 2026-07-03T10:00:00Z
local ATS = "/apis/cnat.programming-kubernetes.info/v1alpha1/namespaces/default/ats"


local function add(outcome, index, due)
  local at = scenarios.at(("a-%03d"):format(index), 0)
  at.spec.schedule = os.date("!%Y-%m-%dT%H:%M:%SZ", due)
  local code, answer = outcome.server:call("POST", ATS, at)
  assert(code == 201, answer.message)
end


-- The pods that were made, in order; each once.
local function pods(outcome)
  local list = {}
  for _, birth in ipairs(outcome.births) do
    if birth.id == "pods" then
      list[#list + 1] = birth
    end
  end
  assert.equal(COUNT, #list)
  assert.is_nil(invariants.once(outcome))
  bench.tried("F33", COUNT)
  return list
end


describe("Hundreds of objects", function()
  it("that are due in the same second are each served once, within it", function()
    local outcome = stage.open(scenarios.cnat)
    for index = 1, COUNT do
      add(outcome, index, START + 600)
    end
    outcome.world.advance "601s"
    for _, pod in ipairs(pods(outcome)) do
      assert.is_true(pod.at >= START + 600 and pod.at <= START + 601, pod.at)
    end
    assert.is_nil(invariants.at_rest(stage.close(outcome)))
  end)

  it("that became due while the machine was suspended for a week are served at once, the oldest first", function()
    local outcome = stage.open(scenarios.cnat)
    for index = 1, COUNT do
      add(outcome, COUNT - index, START + 600 + index * 1000)
    end
    outcome.world.settle()
    assert(virtual.suspend(7 * 86400))
    outcome.world.advance "1s"
    local last = "b"
    for _, pod in ipairs(pods(outcome)) do
      assert.is_true(pod.name < last, pod.name) -- numbered against the order in which they are due
      last = pod.name
    end
  end)

  it("that became due while the operator was down for a week are served once", function()
    local outcome = stage.open(scenarios.cnat)
    outcome.fault = function() end -- whatever it asks: nobody hears it
    for index = 1, COUNT do
      add(outcome, index, START + 600 + index * 1000)
    end
    assert(virtual.suspend(7 * 86400))
    outcome.fault = nil
    stage.kill()
    outcome.world.advance "1s"
    for _, pod in ipairs(pods(outcome)) do
      assert.is_true(pod.at <= host.now())
    end
    assert.is_nil(invariants.at_rest(stage.close(outcome)))
  end)
end)
