--- The conditions of CertificateSigningRequests: who may set which, and their times.
---
--- Rules: kubernetes/pkg/apis/certificates/validation/validation.go,
--- pkg/registry/certificates/certificates/strategy.go.
local check = require "cluster.apiserver.resources.check"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"

local M = {}

local PATH = "status.conditions"
local APPROVED, DENIED, FAILED = "Approved", "Denied", "Failed"
local VERDICTS = { APPROVED, DENIED }
local FINAL = { [APPROVED] = true, [DENIED] = true, [FAILED] = true }
local ALL, TRUE = { "False", "True", "Unknown" }, { "True" }
local BOTH = "Approved and Denied conditions are mutually exclusive"
local NONE = {}


local function list_of(object)
  return object and object.status and object.status.conditions or NONE
end


-- The places of conditions of one type.
local function places(object, kind)
  local found = {}
  for i, condition in ipairs(list_of(object)) do
    if condition.type == kind then
      found[#found + 1] = i
    end
  end
  return found
end


--- Returns true if the object has a condition of that type.
function M.has(object, kind)
  return #places(object, kind) > 0
end


-- Returns the kinds of mistakes that the old conditions have, which may stay.
local function tolerated(old)
  local seen, twice, unnamed = {}, false, false
  for _, condition in ipairs(list_of(old)) do
    twice = twice or seen[condition.type] == true
    unnamed = unnamed or condition.type == ""
    seen[condition.type] = true
  end
  return { both = seen[APPROVED] and seen[DENIED], twice = twice, unnamed = unnamed }
end


local function check_status(condition, path, errors)
  local wanted = FINAL[condition.type] and TRUE or ALL
  if condition.status == "" then
    errors[#errors + 1] = field.required(path, "")
  else
    check.choice(condition.status, wanted, path, errors)
  end
end


--- All conditions of an object. @param old table|nil the object before an update
function M.check(object, old, errors)
  local allowed, seen = tolerated(old), {}
  for i, condition in ipairs(list_of(object)) do
    local path, kind = ("%s[%d]"):format(PATH, i - 1), condition.type
    if kind == "" and not allowed.unnamed then
      errors[#errors + 1] = field.required(path .. ".type", "")
    end
    check_status(condition, path .. ".status", errors)
    if not allowed.both and (kind == APPROVED and seen[DENIED] or kind == DENIED and seen[APPROVED]) then
      errors[#errors + 1] = field.invalid(PATH, kind, BOTH)
    end
    if seen[kind] and not allowed.twice then
      errors[#errors + 1] = field.duplicate(path .. ".type", kind)
    end
    seen[kind] = true
  end
end


--- Checks that an update removes no final condition, and adds a verdict only if it may.
--- @param may_judge boolean true for the update that approves and denies
function M.check_update(new, old, may_judge, errors)
  local function forbid(verb, kind)
    errors[#errors + 1] = field.forbidden(PATH, ('updates may not %s a condition of type "%s"'):format(verb, kind))
  end
  for _, kind in ipairs { APPROVED, DENIED, FAILED } do
    if #places(new, kind) < #places(old, kind) then
      forbid("remove", kind)
    end
  end
  for _, kind in ipairs(may_judge and NONE or VERDICTS) do
    if #places(new, kind) > #places(old, kind) then
      forbid("add", kind)
    end
  end
end


--- Puts back the verdicts as they were, unless some were added or removed.
function M.keep_verdicts(new, old)
  for _, kind in ipairs(VERDICTS) do
    local now, before = places(new, kind), places(old, kind)
    for i, place in ipairs(#now == #before and now or NONE) do
      new.status.conditions[place] = host.json.copy(old.status.conditions[before[i]])
    end
  end
end


local function last_transition(condition, old, now)
  for _, before in ipairs(list_of(old)) do
    if before.type == condition.type and before.status == condition.status
      and before.lastTransitionTime ~= host.json.null then
      return before.lastTransitionTime
    end
  end
  return now
end


--- Sets the times that are not given.
function M.complete(new, old)
  local now = host.timestamp()
  for _, condition in ipairs(list_of(new)) do
    if condition.lastUpdateTime == host.json.null then
      condition.lastUpdateTime = now
    end
    if condition.lastTransitionTime == host.json.null then
      condition.lastTransitionTime = last_transition(condition, old, now)
    end
  end
end


return M
