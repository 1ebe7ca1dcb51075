-- F6: the server has forgotten the version that is watched: 410 as the answer to a watch, as an ERROR event in it, and
-- on the list that follows. At each write of the operator, with the watches cut just before.
local bench = require "spec.faults.support.bench"
local invariants = require "spec.faults.support.invariants"
local scenarios = require "spec.faults.support.scenarios"
local stage = require "spec.faults.support.stage"
local collections = require "spec.faults.support.collections"

local function refuse(reply)
  reply:send(410, "application/json", collections.EXPIRED)
end


local function tell(reply)
  reply:start(200, "application/json")
  reply:write('{"type":"ERROR","object":' .. collections.EXPIRED .. "}\n")
  reply:finish()
end


-- Which lists of a path follow the 410 of its watch: "last" at a version, "any" without one, in order.
local function is_next(path, request)
  return request.path == path and request.method == "GET" and not request.is_watch
end


-- Plays; at write `index` all watches are cut, and the next watch of each collection is answered by `gone`. With
-- `again` the list that follows is 410 as well.
local function play(scenario, index, gone, again)
  local cut, told, lists = false, {}, {}
  local outcome
  outcome = stage.open(scenario, function(request, reply, pass)
    if request.write == index and not cut then
      cut = true
      collections.cut_all(outcome.server)
    end
    if cut and request.is_watch and not told[request.path] then
      told[request.path] = true
      return gone(reply)
    end
    if told[request.path] and is_next(request.path, request) then
      local of = lists[request.path] or {}
      lists[request.path] = of
      of[#of + 1] = request.query:match "resourceVersion=%d" and "last" or "any"
      if again and #of == 1 then
        return refuse(reply)
      end
    end
    pass(reply)
  end)
  scenario.play(outcome.world, outcome)
  return stage.close(outcome), told, lists
end


describe("A watch whose version the server has forgotten", function()
  for _, scenario in ipairs(scenarios.all) do
    local reference = stage.play(scenario)
    for how, gone in pairs { ["as an answer"] = refuse, ["as an event"] = tell } do
      for _, again in ipairs { false, true } do
        it(("is followed by a list at that version%s: %s, at each write of %s"):format(
          again and ", and by one at any when that is gone too" or "", how, scenario.name), function()
          local count = 0
          for index = 1, #reference.writes do
            local outcome, told, lists = play(scenario, index, gone, again)
            local what = ("410 %s at write %d"):format(how, index)
            invariants.check(outcome, reference, what)
            for path in pairs(told) do
              assert.same(again and { "last", "any" } or { "last" }, lists[path], what .. ", " .. path)
              count = count + 1
            end
          end
          assert.is_true(count > 0)
          bench.tried("F6", count)
        end)
      end
    end
  end

  it("has missed nothing when the history was compacted during an outage", function()
    local scenario = scenarios.thing
    local count = bench.each_seed("F6", 20, function(seed)
      local down = false
      local outcome = stage.open(scenario, function(_, reply, pass)
        if down then
          return reply:abort()
        end
        pass(reply)
      end)
      local world, server = outcome.world, outcome.server
      local Thing, ConfigMap, Secret = table.unpack(scenario.kinds)
      local function thing(name, mode)
        return { apiVersion = Thing.apiVersion, kind = Thing.kind, metadata = { name = name }, spec = { mode = mode } }
      end
      world.apply { thing("a", "2 red"), thing("b", "1 green"), thing("c", "3 blue") }
      world.advance(("%ds"):format(seed))
      down = true
      collections.cut_all(server)
      world.apply { thing("b", "2 grey"), thing("d", "1 new") }
      world.delete(ConfigMap, "a-1")
      world.delete(Secret, "c-2")
      world.advance(("%ds"):format(seed * 3))
      server.store:compact(server.store.revision)
      down = false
      stage.close(outcome)
      for name, size in pairs { a = 2, b = 2, c = 3, d = 1 } do
        world.expect(Thing, name, { status = { size = size } })
        for index = 1, size do
          world.expect(ConfigMap, ("%s-%d"):format(name, index), {})
          world.expect(Secret, ("%s-%d"):format(name, index), {})
        end
      end
      assert.is_nil(invariants.cache_is_store(outcome))
      assert.is_nil(invariants.at_rest(outcome))
    end)
    bench.tried("F6", count)
  end)
end)
