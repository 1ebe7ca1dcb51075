-- F19: hours of nothing but bookmarks, whose versions are beyond those of any object.
local bench = require "spec.faults.support.bench"
local host = require "cluster.host"
local invariants = require "spec.faults.support.invariants"
local scenarios = require "spec.faults.support.scenarios"
local stage = require "spec.faults.support.stage"
local collections = require "spec.faults.support.collections"
local virtual = require "cluster.world"

-- Something that no script watches changes: versions move on.
local function stir(server, turn)
  local code = server:call("POST", "/api/v1/namespaces", {
    apiVersion = "v1", kind = "Namespace", metadata = { name = "n" .. turn },
  })
  assert(code == 201, code)
end

-- Waits until each watch is a second old. A watch that ends within its first second, without an event, is followed by a
-- list, as it should be; and the operator may just have opened one, as it draws the time of each watch at random.
local function let_watches_grow_up(outcome)
  while host.now() - outcome.requests[#outcome.requests].at < 1 do
    outcome.world.advance "1s"
  end
end


describe("Bookmarks alone", function()
  for _, scenario in ipairs(scenarios.all) do
    it("move the version and nothing else: " .. scenario.name, function()
      local outcome = stage.play(scenario)
      local world, server = outcome.world, outcome.server
      local count = bench.each_seed("F19", 20, function(seed)
        local writes, before = #outcome.writes, #outcome.requests
        for turn = 1, 5 do
          stir(server, ("%d-%d"):format(seed, turn))
          world.advance(("%ds"):format(61 + seed * 7))
        end
        world.advance "61s"
        let_watches_grow_up(outcome)
        local seen = server.store.revision
        collections.cut_all(server)
        world.advance "10s"
        assert.equal(writes, #outcome.writes)
        local watches = 0
        for index = before + 1, #outcome.requests do
          assert.is_true(outcome.requests[index].is_watch, "a list")
        end
        for index = #outcome.requests - #scenario.kinds + 1, #outcome.requests do
          watches = watches + 1
          local version = math.tointeger(tonumber(outcome.requests[index].query:match "resourceVersion=(%d+)"))
          assert.equal(seen, version)
        end
        assert.equal(#scenario.kinds, watches)
        outcome.cached = virtual.cached()
        assert.is_nil(invariants.cache_is_store(outcome))
      end)
      bench.tried("F19", count)
    end)
  end
end)
