-- F41: an object carries the finalizer before anything is written for it, and goes when all is cleaned up, whatever
-- happens to the operator at one of its writes: it is killed, or the reply is lost. Exhaustive over the writes.
local bench = require "spec.faults.support.bench"
local host = require "cluster.host"
local invariants = require "spec.faults.support.invariants"
local moonloop = require "moonloop"
local stage = require "spec.faults.support.stage"

local Thing = moonloop.kind("example.com/v1", "Thing")
local Secret = moonloop.kind("v1", "Secret")
local Namespace = moonloop.kind("v1", "Namespace")

local function thing(name, mode, namespace)
  return {
    apiVersion = Thing.apiVersion, kind = Thing.kind, metadata = { name = name, namespace = namespace },
    spec = { mode = mode or "make" },
  }
end

-- One that goes, one that stays, one for which nothing is written, and two whose namespace is deleted.
local SCENARIO = {
  name = "finalizing",
  kinds = { Thing, Secret },
  options = {
    scripts = "spec/faults/support/finalizing.lua", crds = "spec/testing/crds", now = "2026-07-03T10:00:00Z",
  },
  play = function(world)
    world.apply { apiVersion = "v1", kind = "Namespace", metadata = { name = "n" } }
    world.apply { thing "goes", thing "stays", thing("idle", "nothing"), thing("c", nil, "n"), thing("d", nil, "n") }
    world.advance "10s"
    world.delete(Thing, "goes")
    world.delete(Thing, "idle")
    world.delete(Namespace, "n")
    world.advance "10m"
  end,
}

local POINTS = {
  ["killed before it is sent"] = function() stage.kill() end,
  ["killed before its reply"] = function(pass)
    pass(stage.blind())
    stage.kill()
  end,
  ["killed after its reply"] = function(pass, reply)
    pass(reply)
    host.defer(stage.kill) -- which comes when the reply has been read
  end,
  ["its reply is lost"] = function(pass, reply)
    pass(stage.blind())
    reply:abort()
  end,
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


-- Each write for an object was made when that carried the finalizer: in the order of the requests.
local function written_without(outcome)
  local carries = {}
  for _, request in ipairs(outcome.writes) do
    local body = request.body ~= "" and host.json.decode(request.body) or {}
    local meta = body.metadata or {}
    if request.resource == "things" and request.changed and meta.finalizers and #meta.finalizers > 0 then
      carries[request.name] = true
    elseif request.resource ~= "events" and request.code and request.code < 300 and request.verb ~= "delete"
      and not carries[request.name or meta.name] then
      return ("%s %s before the finalizer"):format(request.method, request.path)
    end
  end
end


describe("A finalizer", function()
  local reference = stage.play(SCENARIO)

  it("is there before the first write, and everything is gone at the end", function()
    assert.is_nil(written_without(reference))
    local left = {}
    for _, entry in ipairs(reference.objects) do
      local page = entry.key:match "^kube%-public/(%w+)$" -- kube-root-ca.crt is another's
      if entry.id == "configmaps" and page then
        left[#left + 1] = page
      end
    end
    assert.same({ "stays" }, left)
  end)

  for point, strike in pairs(POINTS) do
    it(("keeps its promise when the operator is at a write and %s"):format(point), function()
      for index = 1, #reference.writes do
        invariants.check(play(index, strike), reference, ("write %d: %s"):format(index, point))
      end
      bench.tried("F41", #reference.writes)
    end)
  end
end)
