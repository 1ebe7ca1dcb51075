-- F31: a script that tells of everything, in other words each time, on objects that change all the time. Events are
-- combined, counted and held back; the work they tell of is done as fast as without them.
local bench = require "spec.faults.support.bench"
local moonloop = require "moonloop"
local stage = require "spec.faults.support.stage"

local Thing = moonloop.kind("example.com/v1", "Thing")
local OPTIONS = {
  scripts = "spec/faults/support/chatter.lua", crds = "spec/testing/crds", now = "2026-07-03T10:00:00Z",
}
local OBJECTS, SECONDS = 5, 100


local function thing(name, mode)
  return { apiVersion = Thing.apiVersion, kind = Thing.kind, metadata = { name = name }, spec = { mode = mode } }
end


-- Every object changes each second, and `mode` says what the script tells of it.
local function storm(mode, fault)
  return stage.play({
    name = "chatter", kinds = { Thing }, options = OPTIONS,
    play = function(world)
      for second = 1, SECONDS do
        for index = 1, OBJECTS do
          world.apply(thing("t" .. index, ("%s %d"):format(mode, second)))
        end
        world.advance "1s"
      end
    end,
  }, fault)
end


-- In either form of the API.
local function is_event(request)
  return request.path:find "^/apis/events.k8s.io/" == 1 or request.path:find "^/api/v1/namespaces/[^/]+/events/" == 1
end


local function count_events(outcome)
  local created, patched, other = 0, 0, 0
  for _, request in ipairs(outcome.writes) do
    if not is_event(request) then
      other = other + 1
    elseif request.method == "POST" then
      created = created + 1
    else
      patched = patched + 1
    end
  end
  return created, patched, other
end


local function check_done(outcome)
  for index = 1, OBJECTS do
    outcome.world.expect(Thing, "t" .. index, { status = { seen = SECONDS } })
  end
end


describe("An Event storm", function()
  local quiet = storm "quiet"
  local _, _, wanted = count_events(quiet)
  assert(wanted == OBJECTS * SECONDS, wanted)

  it("of one note is one Event for each object, with a count", function()
    local outcome = storm "same"
    local created, patched, other = count_events(outcome)
    check_done(outcome)
    assert.equal(OBJECTS, created)
    assert.is_true(patched <= OBJECTS * (2 + SECONDS // 60), patched)
    assert.equal(wanted, other)
    bench.tried("F31", OBJECTS * SECONDS)
  end)

  it("in other words each time is combined", function()
    local outcome = storm "words"
    local created, patched, other = count_events(outcome)
    check_done(outcome)
    assert.equal(10 * OBJECTS, created) -- nine, each told twice, and the one that stands for the rest: its note
    -- is new every ten seconds
    assert.is_true(patched <= OBJECTS * (9 + 2 + SECONDS // 10), patched)
    assert.equal(wanted, other)
    bench.tried("F31", OBJECTS * SECONDS)
  end)

  it("for another reason each time is held back after 25", function()
    local outcome = storm "reasons"
    local created, patched, other = count_events(outcome)
    check_done(outcome)
    assert.equal(25 * OBJECTS, created + patched)
    assert.equal(wanted, other)
    bench.tried("F31", OBJECTS * SECONDS)
  end)

  it("on a server that takes no Events costs no work", function()
    local refused = 0
    local outcome = storm("words", function(request, reply, pass)
      if is_event(request) then
        refused = refused + 1
        return reply:send(503, "text/plain", "no")
      end
      pass(reply)
    end)
    check_done(outcome)
    local _, _, other = count_events(outcome)
    assert.equal(wanted, other)
    -- Four at once each ten seconds, till all were dropped.
    assert.is_true(refused <= 4 * 12 * 25 * OBJECTS, refused)
    bench.tried("F31", refused)
  end)
end)
