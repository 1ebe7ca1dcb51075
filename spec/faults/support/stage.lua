--- A scenario played on a world in virtual time, with a hand on every request of the operator: what it asks passes
--- through a fault, and what it wrote is noted from the server's side.
---
---   local outcome = stage.play(scenario)                       -- without a fault
---   local other = stage.play(scenario, function(request, reply, pass)
---     if request.write == 3 then stage.kill() end              -- it never arrived
---     pass(reply)
---   end)
---   invariants.check(other, outcome)
---
--- A scenario (scenarios.lua) is { options = of testing.world, play = function(world), kinds = that are cached,
--- recovery, quiet = durations }.
local host = require "cluster.host"
local testing = require "moonloop.testing"
local virtual = require "cluster.world"

local M = {}

-- After a scenario's last step the operator may recover for so long, and then it may write nothing for so long; a
-- scenario can set others.
local RECOVERY, QUIET = "40m", "30m"


-- A reply that nobody reads.
local Blind = {}
Blind.__index = Blind

function Blind.send() end
function Blind.start() end
function Blind.write() return 0 end
function Blind.finish() end
function Blind.abort() end

--- A reply that is lost: the server has done the request.
function M.blind()
  return setmetatable({}, Blind)
end


--- The operator dies, as by SIGKILL; another one begins at once.
function M.kill()
  assert(virtual.restart())
end


local function is_operator(raw)
  return (raw.headers["user-agent"] or ""):find("moonloop/", 1, true) == 1
end


-- The request as faults see it, noted in outcome.writes when it is one that writes.
local function note(outcome, raw)
  local request = {
    method = raw.method, path = raw.path, query = raw.query, body = raw.body, raw = raw,
    is_watch = raw.query:find("watch=1", 1, true) ~= nil, at = host.now(),
  }
  if raw.method ~= "GET" then
    outcome.writes[#outcome.writes + 1] = request
    request.write = #outcome.writes
  end
  outcome.requests[#outcome.requests + 1] = request
  return request
end


-- Lets every request of the operator pass through the fault; outcome.fault may change while it plays. Notes the
-- server's view in each request: verb, resource, namespace, name, subresource, code, and `changed`: true if an object
-- was stored otherwise.
local function tap(outcome, server)
  local handle = server.handle
  local current
  server:audit(function(record)
    if current and current.path == record.path and current.method == record.method then
      for _, field in ipairs { "verb", "resource", "namespace", "name", "subresource", "code" } do
        current[field] = record[field]
      end
    end
  end)
  server:events(function()
    if current then
      current.changed = true
    end
  end)
  server.handle = function(self, raw, reply)
    if not is_operator(raw) then
      return handle(self, raw, reply)
    end
    local request = note(outcome, raw)
    local function pass(into)
      local before = current
      current = request
      handle(self, raw, into)
      current = before
    end
    if outcome.fault then
      outcome.fault(request, reply, pass)
    else
      pass(reply)
    end
  end
end


local function controller_of(object)
  for _, owner in ipairs(object.metadata.ownerReferences or {}) do
    if owner.controller == true then
      return owner
    end
  end
end


-- Notes what is born, whoever made it: { id =, namespace =, name =, uid =, owner = uid of the controller or nil, at =
-- seconds since 1970 }; and counts the changes of kinds that are cached, in their order: outcome.changes.
local function note_changes(outcome, server)
  local ids = {}
  for _, kind in ipairs(outcome.scenario.kinds) do
    ids[server.registry:of(kind.apiVersion, kind.kind).id] = true
  end
  server:events(function(event)
    if event.type == "ADDED" then
      local owner = controller_of(host.json.decode(event.entry.text))
      outcome.births[#outcome.births + 1] = {
        id = event.id, namespace = event.entry.namespace, name = event.entry.name, owner = owner and owner.uid,
        at = host.now(),
      }
    end
    if ids[event.id] then
      outcome.changes = outcome.changes + 1
      local call = outcome.at_change[outcome.changes]
      if call then
        call()
      end
    end
  end)
end


--- Calls fn right after the `index`th change of a kind that is cached, when who watches has been told; 0: now. It must
--- not write, nor end a connection: host.defer what does.
function M.at_change(outcome, index, fn)
  if index <= outcome.changes then
    fn()
  else
    local before = outcome.at_change[index]
    outcome.at_change[index] = before and function()
      before()
      fn()
    end or fn
  end
end


--- Begins a scenario's world without playing it. @return table outcome: world, server, writes and requests of the
--- operator, births, changes (how many)
function M.open(scenario, fault)
  local world = testing.world(scenario.options)
  local outcome = {
    scenario = scenario, world = world, server = require "cluster.apiserver.running",
    writes = {}, requests = {}, births = {}, changes = 0, at_change = {}, fault = fault,
  }
  tap(outcome, outcome.server)
  note_changes(outcome, outcome.server)
  assert(virtual.restart()) -- so that the tap has the watches as well
  world.settle()
  return outcome
end


--- Lets it come to rest: time to recover, then time in which nothing may be written. Fills outcome.late (writes of that
--- time), outcome.objects (all there are, as JSON) and outcome.cached.
function M.close(outcome)
  local world = outcome.world
  world.advance(outcome.scenario.recovery or RECOVERY)
  local before = #outcome.writes
  world.advance(outcome.scenario.quiet or QUIET)
  outcome.late = #outcome.writes - before
  outcome.cached = virtual.cached()
  outcome.objects = {}
  local store = outcome.server.store
  for _, id in ipairs(store:ids()) do
    store:collection(id):each(nil, nil, function(entry)
      outcome.objects[#outcome.objects + 1] = { id = id, key = entry.namespace .. "/" .. entry.name, text = entry.text }
    end)
  end
  return outcome
end


--- Plays a scenario to its end and beyond.
--- @param fault function|nil (request, reply, pass): see above. request: method, path, query, body, is_watch, and its
---   place among the writes, `write`; pass(reply) hands it to the server
--- @return table outcome
function M.play(scenario, fault)
  local outcome = M.open(scenario, fault)
  scenario.play(outcome.world, outcome)
  return M.close(outcome)
end


return M
