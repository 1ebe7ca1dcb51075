-- F20: the wall clock is set, forth and back, by an hour and by ten years; the machine is suspended; a second comes
-- twice. Delays are of the monotonic clock, an At is due on the wall clock, and fires once.
local bench = require "spec.faults.support.bench"
local invariants = require "spec.faults.support.invariants"
local scenarios = require "spec.faults.support.scenarios"
local stage = require "spec.faults.support.stage"
local virtual = require "cluster.world"

local At, Pod = table.unpack(scenarios.cnat.kinds)
local HOUR, YEAR = 3600, 365 * 86400

-- Within which time, in seconds, what has become due is done.
local PATIENCE = 15


-- A world with an At that is due at 10:20; it is 10:01.
local function begin()
  local outcome = stage.open(scenarios.cnat)
  outcome.world.apply(scenarios.at("a", 20))
  outcome.world.advance "1m"
  return outcome, outcome.world
end


local function is_due(world, pod)
  world.expect(Pod, "a-pod", pod and {} or false)
end


-- It runs, ends, and never again.
local function finish(outcome, world)
  is_due(world, true)
  world.advance "1m"
  world.expect(At, "a", { status = { phase = "DONE" } })
  world.advance "24h"
  assert.is_nil(invariants.once(outcome))
  assert.is_nil(invariants.at_rest(stage.close(outcome)))
  local pods = 0
  for _, birth in ipairs(outcome.births) do
    pods = pods + (birth.id == "pods" and 1 or 0)
  end
  assert.equal(1, pods)
  bench.tried("F20", 1)
end


describe("The wall clock", function()
  for name, jump in pairs { ["an hour"] = HOUR, ["ten years"] = 10 * YEAR } do
    it("set forth by " .. name .. " makes what is due by then due at once", function()
      local outcome, world = begin()
      virtual.set_wall_clock(jump)
      world.advance(PATIENCE .. "s")
      finish(outcome, world)
    end)
  end

  it("set back by an hour makes it wait until it is time again", function()
    local outcome, world = begin()
    virtual.set_wall_clock(-HOUR)
    world.advance "78m" -- 10:19 again
    is_due(world, false)
    world.advance "61s"
    finish(outcome, world)
  end)

  it("set back by ten years, and forth again, fires nothing twice", function()
    local outcome, world = begin()
    virtual.set_wall_clock(-10 * YEAR)
    world.advance "2h"
    is_due(world, false)
    virtual.set_wall_clock(10 * YEAR)
    world.advance(PATIENCE .. "s")
    finish(outcome, world)
  end)

  it("set back after the fact undoes nothing", function()
    local outcome, world = begin()
    world.advance "19m"
    is_due(world, true)
    virtual.set_wall_clock(-HOUR)
    world.advance "2h" -- cnat says PENDING again, until it is time again
    finish(outcome, world)
  end)

  for _, offset in ipairs { -1, 0, 1 } do
    it(("repeats a second %d s from the instant, as for a leap second, and it fires once, not early"):format(offset),
      function()
        local outcome, world = begin()
        world.advance(("%ds"):format(19 * 60 + offset))
        virtual.set_wall_clock(-1)
        if offset < 1 then
          world.settle()
          is_due(world, offset == 0)
        end
        world.advance "2s"
        finish(outcome, world)
      end)
  end

  it("drifts against the other by minutes a day, and nothing is late", function()
    local outcome, world = begin()
    for _ = 1, 60 do -- each 10 s the wall clock gains 5 s
      virtual.set_wall_clock(5)
      world.advance "10s"
    end
    world.advance "4m20s" -- 10:20:20 on the wall
    finish(outcome, world)
  end)
end)


describe("A machine that is suspended for half an hour", function()
  it("does on waking what was due meanwhile, once", function()
    local outcome, world = begin()
    virtual.suspend(1800)
    world.settle()
    finish(outcome, world)
  end)

  for index = 1, 4 do
    it(("in the middle of write %d leaves nothing undone"):format(index), function()
      local reference = stage.play(scenarios.few)
      local outcome = stage.open(scenarios.few)
      outcome.fault = function(request, reply, pass)
        pass(request.write == index and stage.blind() or reply)
        if request.write == index then
          outcome.fault = nil -- the world wakes up with this request unanswered
        end
      end
      scenarios.few.play(outcome.world)
      virtual.suspend(1800)
      outcome.world.advance "5m"
      invariants.check(stage.close(outcome), reference, "suspended at write " .. index)
      bench.tried("F20", 1)
    end)
  end
end)
