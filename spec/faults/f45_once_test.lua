-- F45: ctx.once makes each value once: the operator is killed at each write, or a reply is lost. Each key of an owner
-- has one value, in all versions of the Secret and in all copies that the script wrote elsewhere. Exhaustive.
local bench = require "spec.faults.support.bench"
local host = require "cluster.host"
local invariants = require "spec.faults.support.invariants"
local moonloop = require "moonloop"
local stage = require "spec.faults.support.stage"

local Thing = moonloop.kind("example.com/v1", "Thing")
local ConfigMap = moonloop.kind("v1", "ConfigMap")
local Secret = moonloop.kind("v1", "Secret")

local function thing(name, keys)
  return { apiVersion = Thing.apiVersion, kind = Thing.kind, metadata = { name = name }, spec = { mode = keys } }
end


-- Notes every value that is ever stored: outcome.values["owner's uid/key"] is a set of them.
local function note_values(outcome)
  outcome.values = {}
  outcome.server:events(function(event)
    local object = host.json.decode(event.entry.text)
    local owner = (object.metadata.ownerReferences or {})[1]
    if not owner or (event.id ~= "secrets" and event.id ~= "configmaps") then
      return
    end
    for key, value in pairs(object.data or {}) do
      local place = owner.uid .. "/" .. key
      outcome.values[place] = outcome.values[place] or {}
      outcome.values[place][event.id == "secrets" and host.base64.decode(value) or value] = true
    end
  end)
end


local SCENARIO = {
  name = "once",
  kinds = { Thing, ConfigMap, Secret },
  options = { scripts = "spec/faults/support/once.lua", crds = "spec/testing/crds", now = "2026-07-03T10:00:00Z" },
  play = function(world, outcome)
    note_values(outcome)
    world.apply { thing("a", "x y"), thing("b", "x") }
    world.advance "10s"
    world.apply(thing("a", "x z"))
    world.delete(Thing, "b")
    world.apply(thing("b", "x"))
    world.advance "5m"
  end,
}

-- The faults of a request: kill the operator, or let the server do the request and lose the reply.
local FAULTS = {
  ["killed before it is sent"] = function() stage.kill() end,
  ["killed before the reply"] = function(pass)
    pass(stage.blind())
    stage.kill()
  end,
  ["killed after the reply"] = function(pass, reply)
    pass(reply)
    host.defer(stage.kill)
  end,
  ["a reply that is cut"] = function(pass, reply)
    pass(stage.blind())
    reply:abort()
  end,
  ["a reply that never comes"] = function(pass) pass(stage.blind()) end,
}


local function play(index, strike)
  return stage.play(SCENARIO, function(request, reply, pass)
    if request.write == index then
      strike(pass, reply)
    else
      pass(reply)
    end
  end)
end


local function one_value_each(outcome, what)
  local places = 0
  for place, values in pairs(outcome.values) do
    local count = 0
    for _ in pairs(values) do
      count = count + 1
    end
    assert(count == 1, ("%s: %s had %d values"):format(what, place, count))
    places = places + 1
  end
  assert.equal(5, places, what)
end


local APART = { same_end = true, cache_is_store = true } -- the values are random

describe("A value of ctx.once", function()
  local reference = stage.play(SCENARIO)

  it("is one", function()
    one_value_each(reference, "undisturbed")
    invariants.check(reference, reference, "undisturbed")
  end)

  for name, strike in pairs(FAULTS) do
    it(("stays one when the operator has %s: each write"):format(name), function()
      for index = 1, #reference.writes do
        local outcome = play(index, strike)
        local what = ("%s at write %d"):format(name, index)
        one_value_each(outcome, what)
        invariants.check(outcome, reference, what, APART)
      end
      bench.tried("F45", #reference.writes)
    end)
  end
end)
