-- F35: the server refuses for good: the namespace is terminating, a quota is used up, an admission webhook says no. It
-- is told where a person looks, asked for ever more rarely, and costs nobody else anything; when it is over, work goes
-- on.
local bench = require "spec.faults.support.bench"
local host = require "cluster.host"
local invariants = require "spec.faults.support.invariants"
local scenarios = require "spec.faults.support.scenarios"
local stage = require "spec.faults.support.stage"

local At, Pod = table.unpack(scenarios.cnat.kinds)

local REFUSALS = {
  ["a quota that is used up"] = { 403, "Forbidden",
    'pods "a-pod" is forbidden: exceeded quota: small, requested: pods=1, used: pods=5, limited: pods=5' },
  ["a namespace that is terminating"] = { 403, "Forbidden",
    'pods "a-pod" is forbidden: unable to create new content in namespace default because it is being terminated' },
  ["an admission webhook"] = { 400, "BadRequest", 'admission webhook "policy.example.com" denied the request: no' },
  ["a validation"] = { 422, "Invalid", 'Pod "a-pod" is invalid: spec.containers[0].image: Invalid value: "busybox"' },
  ["a webhook that does not answer"] = { 500, "InternalError",
    'Internal error occurred: failed calling webhook "policy.example.com": context deadline exceeded' },
}

-- Of one key in an hour: 5 ms doubled each time up to 1000 s are 21.
local TRIES_MAX = 30


local function status(code, reason, message)
  return host.json.encode { kind = "Status", apiVersion = "v1", metadata = {}, status = "Failure", code = code,
    reason = reason, message = message }
end


describe("Refused for good", function()
  for name, refusal in pairs(REFUSALS) do
    it("by " .. name .. ": is told, asked rarely, and costs one key", function()
      local tries = 0
      local outcome = stage.open(scenarios.cnat, function(request, reply, pass)
        if request.method == "POST" and request.body:find('"name":"a-pod"', 1, true) then
          tries = tries + 1
          reply:send(refusal[1], "application/json", status(table.unpack(refusal)))
        else
          pass(reply)
        end
      end)
      local world = outcome.world
      world.apply { scenarios.at("a", 0), scenarios.at("b", 0) }
      world.advance "1h"
      world.expect(At, "b", { status = { phase = "DONE" } })
      world.expect(Pod, "a-pod", false)
      assert.is_true(tries >= 5 and tries <= TRIES_MAX, tries)
      bench.tried("F35", tries)
      outcome.fault = nil
      world.advance "30m"
      world.expect(At, "a", { status = { phase = "DONE" } })
      assert.is_nil(invariants.once(outcome))
      assert.is_nil(invariants.right_object(outcome))
      assert.is_nil(invariants.at_rest(stage.close(outcome)))
    end)
  end

  for _, name in ipairs { "a quota that is used up", "an admission webhook", "a validation" } do
    it("by " .. name .. ": an Event says so, and not one for each try", function()
      local refusal = REFUSALS[name]
      local outcome = stage.open(scenarios.cnat, function(request, reply, pass)
        if request.method == "POST" and request.body:find('"name":"a-pod"', 1, true) then
          reply:send(refusal[1], "application/json", status(table.unpack(refusal)))
        else
          pass(reply)
        end
      end)
      outcome.world.apply(scenarios.at("a", 0))
      outcome.world.advance "30m"
      local events = outcome.world.events(At, "a")
      assert.is_true(#events >= 1 and #events <= 3, #events)
      assert.truthy(events[1].note:find(refusal[3]:sub(1, 40), 1, true), events[1].note)
      bench.tried("F35", 1)
    end)
  end

  it("in a namespace that goes away: nothing is left, and nothing is asked", function()
    local outcome = stage.open(scenarios.cnat)
    local world, server = outcome.world, outcome.server
    assert(server:call("POST", "/api/v1/namespaces", { metadata = { name = "doomed" } }) == 201)
    local at = scenarios.at("a", 5)
    at.metadata.namespace = "doomed"
    at.metadata.finalizers = { "example.com/slow" }
    world.apply(at)
    server:call("DELETE", "/api/v1/namespaces/doomed")
    world.advance "1h"
    local asked = 0
    for _, request in ipairs(outcome.writes) do
      asked = asked + (request.path:find("/pods", 1, true) and 1 or 0)
    end
    assert.equal(0, asked)
    bench.tried("F35", 1)
  end)
end)
