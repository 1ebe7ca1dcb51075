-- F16: the operator comes to an API server whose watch cache stands still at change N, having seen change N' of
-- another one; later the cache goes on. As kube-apiserver does: a list at no version is fresh, one that is "not older
-- than" what the cache has is of the cache, one that is newer is told 504, and a watch hears nothing. Exhaustive: all
-- N <= N'.
local bench = require "spec.faults.support.bench"
local host = require "cluster.host"
local invariants = require "spec.faults.support.invariants"
local scenarios = require "spec.faults.support.scenarios"
local stage = require "spec.faults.support.stage"
local streams_of = require "spec.faults.support.streams"

local TOO_LARGE = '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Timeout","code":504,'
  .. '"message":"Timeout: Too large resource version: 9, current: 1","details":{"retryAfterSeconds":1,"causes":['
  .. '{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}]}}'


local function is_list(request)
  return request.method == "GET" and not request.is_watch and request.query:find("resourceVersion=", 1, true)
end


-- A list of the cache that stands still at `revision`.
local function list(request, reply, pass, revision)
  local asked = math.tointeger(request.query:match "resourceVersion=(%d+)")
  if asked > revision then
    return reply:send(504, "application/json", TOO_LARGE, { ["Retry-After"] = "1" })
  end
  request.raw.query = request.query:gsub("resourceVersion=%d+", ("resourceVersion=%d&resourceVersionMatch=Exact")
    :format(revision)):gsub("limit=%d+&?", "")
  pass(reply)
end


-- The way: what happens to the operator at change N'.
local WAYS = {
  ["cut off"] = function(streams) streams:cut() end,
  ["told 410"] = function(streams)
    streams:forget()
    streams:cut()
  end,
  ["killed"] = function() stage.kill() end,
}


local function play(scenario, first, last, way)
  local streams = streams_of.new()
  local frozen, moved = nil, false -- at which revision; is the operator with it?
  local outcome = stage.open(scenario, function(request, reply, pass)
    if moved and frozen and is_list(request) then
      list(request, reply, pass, frozen)
    else
      streams.fault(request, reply, pass)
    end
  end)
  -- Until then it is told everything, by the one that does not stand still.
  function streams.on_line(relay, line, revision)
    if moved and frozen and revision > frozen then
      relay.waiting[#relay.waiting + 1] = line
      return 0
    end
    return relay:send(line)
  end
  stage.at_change(outcome, first, function() frozen = outcome.server.store.revision end)
  stage.at_change(outcome, last, function()
    moved = true
    host.defer(function() way(streams) end)
    host.after(150, function()
      frozen = nil
      streams:open()
    end)
  end)
  scenario.play(outcome.world)
  return stage.close(outcome)
end


describe("A server that stands still in the past", function()
  local scenario = scenarios.few
  local reference = stage.play(scenario)

  for name, way in pairs(WAYS) do
    it("makes an operator wait, not act, that was " .. name, function()
      local count = 0
      for first = 1, reference.changes do
        for last = first, reference.changes do
          local outcome = play(scenario, first, last, way)
          invariants.check(outcome, reference, ("at change %d to a server of change %d, %s"):format(last, first, name))
          count = count + 1
        end
      end
      bench.tried("F16", count)
    end)
  end
end)
