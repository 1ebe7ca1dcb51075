--- Conditions in the status of a namespace that is being deleted.
---
--- Rules and wordings: kubernetes/pkg/controller/namespace/deletion/status_condition_utils.go.
local host = require "cluster.host"

local M = {}

local ORDER = {
  "NamespaceDeletionDiscoveryFailure", "NamespaceDeletionGroupVersionParsingFailure", "NamespaceDeletionContentFailure",
  "NamespaceContentRemaining", "NamespaceFinalizersRemaining",
}
local WELL = {
  NamespaceDeletionDiscoveryFailure = {
    reason = "ResourcesDiscovered", message = "All resources successfully discovered",
  },
  NamespaceDeletionGroupVersionParsingFailure = {
    reason = "ParsedGroupVersions", message = "All legacy kube types successfully parsed",
  },
  NamespaceDeletionContentFailure = {
    reason = "ContentDeleted", message = "All content successfully deleted, may be waiting on finalization",
  },
  NamespaceContentRemaining = { reason = "ContentRemoved", message = "All content successfully removed" },
  NamespaceFinalizersRemaining = {
    reason = "ContentHasNoFinalizers", message = "All content-preserving finalizers finished",
  },
}


-- "a has 1 resource instances, b has 2 resource instances", or nil when there is nothing.
local function join_counts(counts, form)
  local list = {}
  for name, count in pairs(counts) do
    list[#list + 1] = form:format(name, count)
  end
  table.sort(list)
  return list[1] and table.concat(list, ", ")
end


local function true_conditions(remaining, finalizers)
  local found = {}
  local resources = join_counts(remaining, "%s has %d resource instances")
  if resources then
    found.NamespaceContentRemaining = {
      reason = "SomeResourcesRemain", message = "Some resources are remaining: " .. resources,
    }
  end
  local waiting = join_counts(finalizers, "%s in %d resource instances")
  if waiting then
    found.NamespaceFinalizersRemaining = {
      reason = "SomeFinalizersRemain",
      message = "Some content in the namespace has finalizers remaining: " .. waiting,
    }
  end
  return found
end


local function find(list, kind)
  for _, condition in ipairs(list) do
    if condition.type == kind then
      return condition
    end
  end
end


--- Brings namespace.status.conditions up to date. @return boolean whether they changed
--- @param remaining table resource → how many of its objects are left
--- @param finalizers table name → how many objects have it
function M.update(object_status, remaining, finalizers)
  local bad, changed = true_conditions(remaining, finalizers), false
  object_status.conditions = object_status.conditions or host.json.array {}
  for _, kind in ipairs(ORDER) do
    local want = bad[kind] or WELL[kind]
    local state = bad[kind] and "True" or "False"
    local condition = find(object_status.conditions, kind)
    if not condition then
      condition = { type = kind }
      table.insert(object_status.conditions, condition)
    end
    if condition.status ~= state then
      condition.lastTransitionTime = host.timestamp()
      changed = true
    end
    changed = changed or condition.reason ~= want.reason or condition.message ~= want.message
    condition.status, condition.reason, condition.message = state, want.reason, want.message
  end
  return changed
end


return M
