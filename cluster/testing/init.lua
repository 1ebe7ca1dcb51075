--- Tests of scripts, for `moonloop test`: a cluster in memory, the operator with the script in its sandbox, and a clock
--- that stands still until the test advances it.
---
---   local testing = require "moonloop.testing"
---   local world = testing.world { now = "2026-07-03T10:00:00Z" }      -- the script beside this *_test.lua
---   world.apply { apiVersion = …, kind = "At", metadata = { name = "x" }, spec = … }
---   world.advance "5m"
---   world.expect(At, "x", { status = { phase = "DONE" } })
---
--- Each call that changes the world returns when no work is left, so a test sees only finished states.
local calls = require "cluster.testing.calls"
local coverage = require "cluster.testing.coverage"
local crds = require "cluster.testing.crds"
local expect = require "cluster.testing.expect"
local faults = require "cluster.testing.faults"
local http = require "cluster.testing.http"
local host = require "cluster.host"
local metrics = require "cluster.testing.metrics"
local objects = require "cluster.testing.objects"
local pods = require "cluster.testing.pods"
local time = require "moonloop.time"
local waiting = require "cluster.testing.waiting"
local webhooks = require "cluster.testing.webhooks"
local virtual = require "cluster.world"

local M = {}

local ADVANCE_MAX = 1000000000 -- seconds, of one call: 31 years

local current -- the world that is; there is one at a time


-- The file of the test that calls.
local function calling_file()
  local level = 2
  while true do
    local info = debug.getinfo(level, "S")
    if not info then
      return nil
    end
    local file = info.source:match "^@(.*_test%.lua)$"
    if file then
      return file
    end
    level = level + 1
  end
end


local function list_of(value)
  return type(value) == "table" and value or { value }
end


local function instant(now)
  if type(now) ~= "string" then
    return now
  end
  local seconds, why = time.parse(now)
  return seconds or error(("%s: now: %s"):format(calls.text_of "testing.world", host.escape(why)), 0)
end


-- Fails where the test stands that called.
local function must(ok, why)
  if not ok then
    error(host.escape(why), 0)
  end
  return ok
end


-- Lets the operator run until nothing is left to do at this instant.
local function settle()
  must(virtual.settle())
end


-- Of a duration that a test gives.
local function seconds_of(duration)
  local seconds, why = duration, nil
  if type(duration) == "string" then
    seconds, why = time.duration(duration)
  elseif not (duration >= 0 and duration <= ADVANCE_MAX) then
    seconds, why = nil, ("expected seconds from 0 to %d"):format(ADVANCE_MAX)
  end
  return seconds or error(("%s: %s"):format(calls.text_of "world.advance", host.escape(why)), 0)
end


local function add_time(world, guard)
  --- Moves the clock by a duration such as "5m", or by seconds, stopping wherever something is due.
  function world.advance(duration)
    guard()
    must(virtual.advance(seconds_of(duration)))
  end

  --- Kills the operator where it stands, and begins another one.
  function world.restart()
    guard()
    must(virtual.restart())
    settle()
  end
end


-- The stored objects of a server with these definitions, by all that they depend on: made once, not for each test. The
-- seed is one that no world has, so that new objects of a world get other uids than these.
local bases = {}
local BASE_SEED = 9000000000

local function base_of(paths, now)
  local key = ("%s\0%s"):format(table.concat(paths, "\0"), now)
  if not bases[key] then
    must(virtual.reset { now = now, seed = BASE_SEED })
    local server = require "cluster.apiserver.running"
    crds.apply(server, paths)
    must(virtual.settle())
    local records, revision = server.store:dump()
    bases[key] = { records = records, revision = revision }
  end
  return bases[key]
end


local function paths_of(options, file)
  local scripts = options.scripts or file and file:gsub("_test%.lua$", ".lua")
  if not scripts then
    error("testing.world: give scripts, or call it from a file that ends in _test.lua", 0)
  end
  return list_of(scripts), list_of(options.crds or file and crds.beside(file) or {})
end


--- A new world; the one before it ends.
---
--- @param options table|nil
---   scripts   paths of scripts or folders; default: "x.lua" for a test in "x_test.lua"
---   now       what time it is, RFC 3339 or seconds since 1970; default 2026-01-01T00:00:00Z
---   crds      paths of CustomResourceDefinitions; default: crds/ beside the test's folder, or in it
---   pods      what pods do once they run: "run" (default: on, until told), "succeed", "fail", or
---             function(pod, container) -> { after = seconds, code = exit code } | nil
---   seed      of everything random; default 1
function M.world(options)
  options = options or {}
  local file, now, seed = calling_file(), instant(options.now), options.seed or 1
  local scripts, definitions = paths_of(options, file)
  local base = base_of(definitions, now)
  must(virtual.reset {
    scripts = scripts, now = now, seed = seed, settings = { history = 1000, restored_state = base },
  })
  local world = {}
  local function guard()
    if current ~= world then
      error("this world has ended: a later one was begun", 0)
    end
  end
  current = world
  local server = require "cluster.apiserver.running"
  add_time(world, guard)
  objects.add(world, server, guard, settle)
  pods.add(world, server, options.pods or "run", guard, settle)
  faults.add(world, server, guard, settle)
  waiting.add(world, settle, guard)
  webhooks.add(world, guard)
  expect.add(world)
  http.add(world, guard)
  metrics.add(world, guard)
  settle()
  local ready = must(virtual.ready())
  if ready ~= true then
    error(ready, 0)
  end
  coverage.note_controllers()
  return calls.public("world", world)
end


return calls.public("testing", M)
