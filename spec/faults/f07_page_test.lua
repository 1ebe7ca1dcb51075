-- F7: the continue token of a paged list expires, at every page; the operator begins, and what it lists comes in pages
-- of two. A cache never shows a part of a list that did not come to its end.
local bench = require "spec.faults.support.bench"
local invariants = require "spec.faults.support.invariants"
local scenarios = require "spec.faults.support.scenarios"
local stage = require "spec.faults.support.stage"
local collections = require "spec.faults.support.collections"
local virtual = require "cluster.world"

local scenario = scenarios.thing
local Thing = scenario.kinds[1]

local function apply_things(world)
  for index = 1, 7 do
    world.apply { apiVersion = Thing.apiVersion, kind = Thing.kind, metadata = { name = "t" .. index },
      spec = { mode = ("%d red"):format(index % 3) } }
  end
end


local function cached_things()
  local count = 0
  for _, entry in ipairs(virtual.cached()) do
    count = count + (entry.kind == Thing.kind and 1 or 0)
  end
  return count
end


-- A new operator whose lists of `kind` have pages of two; page `number` of them is 410, `times` over. Returns the
-- outcome and how many pages there were.
local function play(kind, number, times)
  local pages, refused, whole = 0, 0, 0
  local outcome
  outcome = stage.open(scenario, function(request, reply, pass)
    if not outcome or request.is_watch or not collections.is_of(outcome.server, request, kind) then
      return pass(reply)
    end
    if kind == Thing then -- all or nothing
      local cached = cached_things()
      assert(cached == 0 or cached == 7, cached)
    end
    pages = request.query:find("continue=", 1, true) and pages + 1 or 1
    if pages == number and number > 1 and refused < times then
      refused = refused + 1
      return reply:send(410, "application/json", collections.EXPIRED)
    end
    whole = whole + (request.query:find("limit=", 1, true) and 0 or 1)
    request.raw.query = request.raw.query:gsub("limit=500", "limit=2")
    pass(reply)
  end)
  apply_things(outcome.world)
  outcome.world.advance "10s"
  pages, refused, whole = 0, 0, 0
  outcome.world.restart()
  local most = pages
  return stage.close(outcome), most, refused, whole
end


describe("A continue token that expires", function()
  for _, kind in ipairs(scenario.kinds) do
    it(("makes the list of %s begin anew, at every page"):format(kind.kind), function()
      local reference, pages = play(kind, 0, 0)
      assert.is_true(pages >= 3, pages)
      for number = 2, pages do
        local outcome, _, refused, whole = play(kind, number, 1)
        assert.equal(1, refused)
        assert.equal(1, whole) -- in one piece, in which no token can expire
        invariants.check(outcome, reference, ("page %d expired"):format(number))
      end
      bench.tried("F7", pages - 1)
    end)
  end
end)
