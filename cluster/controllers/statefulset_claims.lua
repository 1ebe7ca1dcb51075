--- The claims of a StatefulSet's pods: created before the pod. persistentVolumeClaimRetentionPolicy decides their
--- owner, so that they are deleted with the pod that is scaled down, or with the set, or with neither.
---
--- Rules: kubernetes/pkg/controller/statefulset/{stateful_pod_control,stateful_set_utils}.go.
local host = require "cluster.host"

local M = {}


--- The name of a claim: of its template, the set and the ordinal.
function M.name(template, set, ordinal)
  return ("%s-%s-%d"):format(template.metadata.name, set.metadata.name, ordinal)
end


local function find(api, set, template, ordinal)
  return api.get("", "v1", "persistentvolumeclaims", set.metadata.namespace, M.name(template, set, ordinal))
end


local function make(api, set, template, ordinal)
  local name, meta = M.name(template, set, ordinal), host.json.copy(template.metadata)
  meta.name, meta.namespace = name, set.metadata.namespace
  meta.labels = meta.labels or {}
  for key, value in pairs(set.spec.selector.matchLabels or {}) do
    meta.labels[key] = value
  end
  local spec = host.json.copy(template.spec)
  api.create { apiVersion = "v1", kind = "PersistentVolumeClaim", metadata = meta, spec = spec }
  api.event(set, "Normal", "SuccessfulCreate", ("Create Claim %s Pod %s-%d in StatefulSet %s success"):format(name,
    set.metadata.name, ordinal, set.metadata.name))
end


--- Makes the claims of an ordinal that are missing. A pod has to wait for one that is about to go.
function M.ensure(api, set, ordinal)
  for _, template in ipairs(set.spec.volumeClaimTemplates or {}) do
    local claim = find(api, set, template, ordinal)
    if not claim then
      make(api, set, template, ordinal)
    elseif claim.metadata.deletionTimestamp then
      error(("pvc %s is being deleted"):format(claim.metadata.name), 0)
    end
  end
end


local function refers(reference, owner)
  return reference.apiVersion == owner.apiVersion and reference.kind == owner.kind
    and reference.name == owner.metadata.name
end


local function reference_to(owner)
  return {
    apiVersion = owner.apiVersion, kind = owner.kind, name = owner.metadata.name, uid = owner.metadata.uid,
    controller = true, blockOwnerDeletion = true,
  }
end


-- The owner that a claim should have: the set, the pod, or nil.
local function owner_for(set, pod, is_condemned)
  local policy = set.spec.persistentVolumeClaimRetentionPolicy or {}
  if is_condemned and policy.whenScaled == "Delete" then
    return pod
  elseif policy.whenDeleted == "Delete" then
    return set
  end
end


-- The owner references a claim should have, or nil to leave it: it is a stranger's, or of an earlier pod or set.
local function references_for(claim, set, pod, owner)
  local list, has_other = host.json.array {}, false
  for _, reference in ipairs(claim.metadata.ownerReferences or {}) do
    local whose = refers(reference, set) and set or refers(reference, pod) and pod
    if whose and reference.uid ~= whose.metadata.uid then
      return nil
    elseif not whose then
      has_other = has_other or reference.controller
      list[#list + 1] = reference
    end
  end
  if owner and not has_other then
    list[#list + 1] = reference_to(owner)
  end
  return list
end


--- Gives the claims of a pod the owner that they should have.
--- @param is_condemned boolean whether the pod goes because the set has become smaller
function M.own(api, set, pod, ordinal, is_condemned)
  for _, template in ipairs(set.spec.volumeClaimTemplates or {}) do
    local claim = find(api, set, template, ordinal)
    local wanted = claim and references_for(claim, set, pod, owner_for(set, pod, is_condemned))
    if wanted and not host.json.equal(wanted, claim.metadata.ownerReferences or host.json.array {}) then
      api.patch(claim, { metadata = { ownerReferences = #wanted > 0 and wanted or host.json.null } })
    end
  end
end


--- Returns true if a claim will be deleted with an earlier pod of this name, so that the next pod has to wait.
function M.are_stale(api, set, ordinal)
  local name = ("%s-%d"):format(set.metadata.name, ordinal)
  for _, template in ipairs(set.spec.persistentVolumeClaimRetentionPolicy.whenScaled == "Delete"
    and set.spec.volumeClaimTemplates or {}) do
    local claim = find(api, set, template, ordinal)
    for _, reference in ipairs(claim and claim.metadata.ownerReferences or {}) do
      if reference.kind == "Pod" and reference.name == name then
        return true
      end
    end
  end
  return false
end


return M
