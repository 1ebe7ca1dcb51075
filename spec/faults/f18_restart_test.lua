-- F18: the API server restarts: every watch drops at once, and for a while nobody answers. Or it comes back from a
-- backup, and counts its versions from a lower one.
local bench = require "spec.faults.support.bench"
local invariants = require "spec.faults.support.invariants"
local scenarios = require "spec.faults.support.scenarios"
local stage = require "spec.faults.support.stage"
local collections = require "spec.faults.support.collections"

-- Lists of each path that the server has answered, among the requests from `from` on. While it is away, each try counts
-- among the requests only.
local function lists(outcome, from)
  local counts = {}
  for index = from, #outcome.requests do
    local request = outcome.requests[index]
    if request.code and request.method == "GET" and not request.is_watch and request.path:match "s$" then
      counts[request.path] = (counts[request.path] or 0) + 1
    end
  end
  return counts
end


describe("An API server that restarts", function()
  for _, scenario in ipairs(scenarios.all) do
    local reference = stage.play(scenario)
    it("is found again with at most one list of each kind: " .. scenario.name, function()
      local count = bench.each_seed("F18", 30, function(seed)
        local down = false
        scenario.options.seed = seed
        local outcome = stage.open(scenario, function(_, reply, pass)
          if down then
            return reply:abort()
          end
          pass(reply)
        end)
        local world = outcome.world
        scenario.play(world, outcome)
        local from = #outcome.requests + 1
        for _ = 1, 3 do
          down = true
          collections.cut_all(outcome.server)
          world.advance(("%ds"):format(seed))
          down = false
          world.advance "62s"
        end
        for path, count in pairs(lists(outcome, from)) do
          assert.is_true(count <= 3, ("%s was listed %d times in three outages"):format(path, count))
        end
        -- Each kind by itself, and one of them each second or two.
        local most = 3 * (#scenario.kinds * (7 + seed // 15) + seed)
        assert.is_true(#outcome.requests - from <= most, #outcome.requests - from)
        stage.close(outcome)
        invariants.check(outcome, reference, ("three restarts of %d s"):format(seed))
      end)
      scenario.options.seed = nil
      bench.tried("F18", count)
    end)
  end
end)


-- The store as it was, with versions as they were. Meanwhile the server is away.
local function restore(outcome, records, revision)
  local store = outcome.server.store
  outcome.fault = function(_, reply) reply:abort() end
  collections.cut_all(outcome.server)
  outcome.world.advance "2s"
  outcome.fault = nil
  store.collections, store.revision, store.floor = {}, 0, 0
  store:restore(records, function(id) return outcome.server.registry:by_id(id) end)
  store.revision = revision
  store:compact(revision)
end


describe("An API server that was restored from a backup", function()
  it("is believed within ten seconds, and everything is as it has it", function()
    local scenario = scenarios.thing
    local Thing, ConfigMap = table.unpack(scenario.kinds)
    local function thing(name, mode)
      return { apiVersion = Thing.apiVersion, kind = Thing.kind, metadata = { name = name }, spec = { mode = mode } }
    end
    local count = bench.each_seed("F18", 10, function(seed)
      local outcome = stage.open(scenario)
      local world, server = outcome.world, outcome.server
      world.apply { thing("a", "2 red"), thing("b", "1 green") }
      world.advance "10s"
      local records, revision = server.store:dump()
      -- Three versions, or many, between the backup and the end.
      server.store.revision = revision + (seed % 3 == 0 and 0 or 1000)
      world.apply { thing("a", "2 blue") }
      for turn = 1, seed do
        world.apply(thing("b", ("%d green"):format(turn % 3 + 1)))
      end
      world.advance(("%ds"):format(seed))
      restore(outcome, records, revision)
      if seed % 2 == 0 then -- somebody goes on writing
        for turn = 1, seed * 20 do
          server:call("POST", "/api/v1/namespaces", {
            apiVersion = "v1", kind = "Namespace", metadata = { name = "after-" .. turn } })
        end
      end
      world.advance "10s"
      stage.close(outcome)
      world.expect(Thing, "b", { spec = { mode = "1 green" } })
      world.expect(ConfigMap, "a-1", { data = { text = "red" } })
      assert.is_nil(invariants.cache_is_store(outcome))
      assert.is_nil(invariants.at_rest(outcome))
    end)
    bench.tried("F18", count)
  end)
end)
