--- Which of its requested names a CRD gets: a group accepts each name once.
---
--- Rules and wordings: apiextensions-apiserver/pkg/controller/status/naming_controller.go.
local conditions = require "cluster.apiserver.crd.conditions"
local field = require "cluster.apiserver.field"
local host = require "cluster.host"

local M = {}

local SINGLE = {
  { "plural", "PluralConflict", "resources" }, { "singular", "SingularConflict", "resources" },
  { "kind", "KindConflict", "kinds" }, { "listKind", "ListKindConflict", "kinds" },
}


-- The names that the other CRDs of the group have.
local function names_in_use(crd, others)
  local used = { resources = {}, kinds = {} }
  for _, other in pairs(others) do
    local names = other.status.acceptedNames
    if other.metadata.name ~= crd.metadata.name then
      used.resources[names.plural or ""], used.resources[names.singular or ""] = true, true
      used.kinds[names.kind or ""], used.kinds[names.listKind or ""] = true, true
      for _, short in ipairs(names.shortNames or {}) do
        used.resources[short] = true
      end
    end
  end
  return used
end


local function in_use(name)
  return field.quote(name) .. " is already in use"
end


-- Returns the message about the short names that are not free, or nil.
local function short_conflict(wanted, had, used)
  local mine, messages = {}, {}
  for _, name in ipairs(had or {}) do
    mine[name] = true
  end
  for _, name in ipairs(wanted or {}) do
    if not mine[name] and used[name] then
      messages[#messages + 1] = in_use(name)
    end
  end
  if #messages > 1 then
    return "[" .. table.concat(messages, ", ") .. "]"
  end
  return messages[1]
end


-- The names the CRD gets, and the last conflict: its reason and message.
local function settle(crd, used)
  local wanted, had = crd.spec.names, crd.status.acceptedNames
  local names, reason, message = {}, nil, nil
  local function short()
    local conflict = short_conflict(wanted.shortNames, had.shortNames, used.resources)
    if conflict then
      reason, message = "ShortNamesConflict", conflict
    end
    names.shortNames = conflict and had.shortNames or not conflict and wanted.shortNames or nil
  end
  for i, rule in ipairs(SINGLE) do
    local key, name = rule[1], wanted[rule[1]]
    if i == 3 then
      short()
    end
    if name ~= had[key] and used[rule[3]][name] then
      reason, message = rule[2], in_use(name)
      names[key] = had[key]
    else
      names[key] = name
    end
  end
  names.plural, names.kind = names.plural or "", names.kind or ""
  names.categories = wanted.categories
  return names, reason, message
end


--- Settles the names of `crd`, whose status is changed.
--- @param others table the CRDs of its group by name; it may be among them
--- @return boolean whether anything has changed
function M.accept(crd, others)
  local before = host.json.copy(crd.status)
  local names, reason, message = settle(crd, names_in_use(crd, others))
  crd.status.acceptedNames = names
  if reason then
    conditions.set(crd, "NamesAccepted", "False", reason, message)
    if not conditions.is_true(crd, "Established") then
      conditions.set(crd, "Established", "False", "NotAccepted", "not all names are accepted")
    end
  else
    conditions.set(crd, "NamesAccepted", "True", "NoConflicts", "no conflicts found")
    if not conditions.is_true(crd, "Established") then
      conditions.set(crd, "Established", "False", "Installing", "the initial names have been accepted")
    end
  end
  return not host.json.equal(before, crd.status)
end


return M
