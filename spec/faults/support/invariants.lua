--- Invariants that hold after every run, with any fault (I1 to I8 of the fault matrix), read from the server's state
--- and its log of requests alone. Each function returns nil, or a message that says the error.
local expect = require "cluster.testing.expect"
local host = require "cluster.host"

local M = {}

-- Kinds whose objects come with the fault itself.
local APART = { ["events"] = true, ["events.events.k8s.io"] = true }

local INSTANT = "^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d"
local RANDOM = "^(kube%-api%-access)%-%w+$"
local MASKED = {
  uid = true, resourceVersion = true, managedFields = true, podIP = true, podIPs = true, hostIP = true, hostIPs = true,
  containerID = true, clusterIP = true, clusterIPs = true, ["tls.crt"] = true, ["ca.crt"] = true,
  ["moonloop.dev/owner"] = true,
}


-- Leaves out fields that differ between any two runs, and the trace of a failure that is over.
local function masked(value)
  if type(value) == "string" then
    return value:find(INSTANT) and "(an instant)" or (value:gsub(RANDOM, "%1-(any)"))
  elseif type(value) ~= "table" then
    return value
  elseif value.type == "Reconciled" and value.status == "True" then
    return nil
  end
  local copy = {}
  for key, field in pairs(value) do
    if not MASKED[key] and field ~= host.json.null then
      copy[key] = masked(field)
    end
  end
  if copy.conditions and not next(copy.conditions) then
    copy.conditions = nil
  end
  return copy
end


local function texts_by_place(objects)
  local places = {}
  for _, entry in ipairs(objects) do
    if not APART[entry.id] then
      places[entry.id .. " " .. entry.key] = entry.text
    end
  end
  return places
end


-- How two objects differ, as JSON, but for what no two runs have in common. Most are the same to the letter: they were
-- there before the run began.
local function difference(wanted, got)
  if wanted == got then
    return nil
  end
  local a, b = masked(host.json.decode(wanted)), masked(host.json.decode(got))
  return not host.json.equal(a, b) and (expect.difference(a, b) or expect.difference(b, a)) or nil
end


--- I7: the state that was reached is that of the run without a fault.
function M.same_end(outcome, reference)
  local got, wanted = texts_by_place(outcome.objects), texts_by_place(reference.objects)
  for place, text in pairs(wanted) do
    if not got[place] then
      return place .. " is missing"
    end
    local differs = difference(text, got[place])
    if differs then
      return ("%s ended otherwise:\n%s"):format(place, differs)
    end
  end
  for place in pairs(got) do
    if not wanted[place] then
      return place .. " should not be there"
    end
  end
end


--- I7, I8: and nothing was written any more.
function M.at_rest(outcome)
  if outcome.late > 0 then
    local last = outcome.writes[#outcome.writes]
    return ("%d writes after the end; the last: %s %s"):format(outcome.late, last.method, last.path)
  end
end


--- I2 (and I1): the caches show what the server has.
function M.cache_is_store(outcome)
  local cached = {}
  for _, entry in ipairs(outcome.cached) do
    cached[("%s %s %s"):format(entry.apiVersion, entry.kind, entry.key)] = entry.uid .. " " .. entry.resourceVersion
  end
  for _, kind in ipairs(outcome.scenario.kinds) do
    local res = outcome.server.registry:of(kind.apiVersion, kind.kind)
    local missing
    outcome.server.store:collection(res.id):each(nil, nil, function(entry)
      local key = entry.namespace == "" and entry.name or entry.namespace .. "/" .. entry.name
      local place = ("%s %s %s"):format(kind.apiVersion, kind.kind, key)
      local stored = entry.uid .. " " .. entry.revision
      if cached[place] ~= stored then
        missing = ("%s is %s, in the cache %s"):format(place, stored, cached[place])
      end
      cached[place] = nil
    end)
    if missing then
      return missing
    end
  end
  local place = next(cached)
  if place then
    return place .. " is cached, and gone"
  end
end


--- I3: every delete and every patch of what was read says which object it means, by uid; a patch also which version.
function M.right_object(outcome)
  for _, request in ipairs(outcome.writes) do
    local body = request.body ~= "" and host.json.decode(request.body) or {}
    local about = ("%s %s: %s"):format(request.method, request.path, request.body)
    local is_event = request.path:find("/events", 1, true)
    if request.method == "DELETE" and not (body.preconditions and body.preconditions.uid) then
      return about .. " has no uid"
    elseif request.raw.headers["content-type"] == "application/merge-patch+json" and not is_event then
      local meta = body.metadata or {}
      if not meta.uid or not meta.resourceVersion then
        return about .. " has no uid or no resourceVersion"
      end
    end
  end
end


-- How often each child was made. Owners of one name that came one after the other count as one.
local function births(outcome)
  local counts = {}
  for _, birth in ipairs(outcome.births) do
    if birth.owner then
      local place = ("%s %s/%s"):format(birth.id, birth.namespace, birth.name)
      counts[place] = (counts[place] or 0) + 1
    end
  end
  return counts
end


--- I4: of each owner no child was made twice; where the run without a fault made it again on purpose, not more often.
function M.once(outcome, reference)
  local seen, wanted = {}, reference and births(reference) or {}
  for _, birth in ipairs(outcome.births) do
    local place = birth.owner and ("%s %s/%s of %s"):format(birth.id, birth.namespace, birth.name, birth.owner)
    local most = wanted[("%s %s/%s"):format(birth.id, birth.namespace, birth.name)] or 1
    seen[place or ""] = (seen[place or ""] or 0) + 1
    if place and seen[place] > most then
      return ("%s was created %d times"):format(place, seen[place])
    end
  end
end


-- How often the operator changed each object.
local function changes(outcome)
  local counts = {}
  for _, request in ipairs(outcome.writes) do
    if request.changed and request.resource ~= "events" then
      local place = ("%s %s/%s"):format(request.resource, request.namespace, request.name)
      counts[place] = (counts[place] or 0) + 1
    end
  end
  return counts
end


--- I8: no object was changed more than half as often again as without a fault.
function M.few_writes(outcome, reference)
  local wanted = changes(reference)
  for place, count in pairs(changes(outcome)) do
    if count > math.max(1, (wanted[place] or 0) * 3 // 2) then
      return ("%s was changed %d times, without a fault %d times"):format(place, count, wanted[place] or 0)
    end
  end
end


local ALL = { "same_end", "at_rest", "cache_is_store", "right_object", "once", "few_writes" }

--- Fails with the first invariant that does not hold.
--- @param what string the run, for the message
--- @param except table|nil names of invariants that the fault itself breaks, as a set
function M.check(outcome, reference, what, except)
  for _, name in ipairs(ALL) do
    local wrong = not (except and except[name]) and M[name](outcome, reference)
    if wrong then
      error(("%s: %s: %s"):format(what, name, wrong), 0)
    end
  end
end


return M
