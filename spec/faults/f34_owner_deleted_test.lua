-- F34: somebody deletes the owner just before one of the operator's requests arrives, in the background or foreground.
-- Nothing of it is left: what a reconcile under way still makes for it carries its uid, and is collected. Exhaustive
-- over the requests.
local bench = require "spec.faults.support.bench"
local host = require "cluster.host"
local invariants = require "spec.faults.support.invariants"
local scenarios = require "spec.faults.support.scenarios"
local stage = require "spec.faults.support.stage"
local streams_of = require "spec.faults.support.streams"

local OWNERS = {
  [scenarios.cnat] = {
    path = "/apis/cnat.programming-kubernetes.info/v1alpha1/namespaces/default/ats/", "waits", "late",
  },
  [scenarios.thing] = { path = "/apis/example.com/v1/namespaces/default/things/", "a" },
  [scenarios.tracked_children] = { path = "/apis/example.com/v1/namespaces/default/things/", "a" },
  [scenarios.children] = { path = "/apis/example.com/v1/namespaces/default/things/", "a" },
}


-- Deletes all that `owners` names before request `index`, which then comes too late.
local function play(scenario, index, policy)
  local owners = OWNERS[scenario]
  local outcome, count = nil, 0
  outcome = stage.open(scenario, function(_, reply, pass)
    count = count + 1
    if count == index then
      for _, name in ipairs(owners) do
        outcome.server:call("DELETE", owners.path .. name, { propagationPolicy = policy })
      end
    end
    pass(reply)
  end)
  -- A test that applies or deletes what is gone is told so; that is no failure here.
  pcall(scenario.play, outcome.world)
  outcome.world.advance "10m"
  for _, name in ipairs(owners) do
    outcome.server:call("DELETE", owners.path .. name, { propagationPolicy = policy })
  end
  return stage.close(outcome)
end


-- Returns the first object whose owner is not there, as text, or nil.
local function orphan(outcome)
  local uids, owners = {}, {}
  for _, entry in ipairs(outcome.objects) do
    local metadata = host.json.decode(entry.text).metadata
    uids[metadata.uid], owners[entry] = true, metadata.ownerReferences
    local followed = (metadata.annotations or {})["moonloop.dev/owner"]
    if followed then
      owners[entry] = { { uid = followed:match "%S+$", name = followed } }
    end
  end
  for _, entry in ipairs(outcome.objects) do
    for _, owner in ipairs(owners[entry] or {}) do
      if not uids[owner.uid] then
        return ("%s %s is left of %s"):format(entry.id, entry.key, owner.name)
      end
    end
  end
end


describe("An owner that is deleted", function()
  it("and is still in the cache, for ever, gets a child once, which is collected", function()
    local ghost = scenarios.at("ghost", 0)
    ghost.metadata.namespace, ghost.metadata.uid = "default", "11111111-2222-4333-8444-555555555555"
    local streams, is_told = streams_of.new(), false
    function streams.on_line(relay, line, revision)
      local waiting = relay:send(line)
      if not is_told and relay.path:find("/ats", 1, true) then
        is_told = true
        ghost.metadata.resourceVersion = tostring(revision)
        relay:send(host.json.encode { type = "ADDED", object = ghost } .. "\n")
      end
      return waiting
    end
    local outcome = stage.play(scenarios.few, streams.fault)
    local made = 0
    for _, birth in ipairs(outcome.births) do
      made = made + (birth.name == "ghost-pod" and 1 or 0)
    end
    assert.equal(1, made)
    assert.is_nil(orphan(outcome))
    bench.tried("F34", 1)
  end)

  for _, scenario in ipairs(scenarios.writing) do
    local requests = #stage.play(scenario).writes + 10
    for _, policy in ipairs { "Background", "Foreground" } do
      it(("in the %s leaves nothing: before each request of %s"):format(policy:lower(), scenario.name), function()
        for index = 1, requests do
          local outcome = play(scenario, index, policy)
          local wrong = orphan(outcome) or invariants.at_rest(outcome) or invariants.cache_is_store(outcome)
            or invariants.right_object(outcome)
          assert(not wrong, ("%s before request %d: %s"):format(policy, index, wrong))
        end
        bench.tried("F34", requests)
      end)
    end
  end
end)
