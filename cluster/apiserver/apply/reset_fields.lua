--- Fields whose owner a write does not change, because the write cannot change the fields: status in a write of the
--- object, everything but status in a write of the status, and fields that only the server sets.
--- Rules: GetResetFields of the strategies in kubernetes/pkg/registry and apiextensions-apiserver/pkg/registry;
--- apimachinery/pkg/util/managedfields/internal/stripmeta.go.
local set = require "cluster.apiserver.apply.set"

local M = {}

local LEAF = set.LEAF

--- Fields of metadata that are never owned.
M.STRIPPED = {
  ["f:apiVersion"] = LEAF,
  ["f:kind"] = LEAF,
  ["f:metadata"] = {
    ["."] = LEAF,
    ["f:name"] = LEAF,
    ["f:namespace"] = LEAF,
    ["f:creationTimestamp"] = LEAF,
    ["f:selfLink"] = LEAF,
    ["f:uid"] = LEAF,
    ["f:clusterName"] = LEAF,
    ["f:generation"] = LEAF,
    ["f:managedFields"] = LEAF,
    ["f:resourceVersion"] = LEAF,
  },
}

local NOTHING = {}
local STATUS = { ["f:status"] = LEAF }
local SPEC = { ["f:spec"] = LEAF }
local SPEC_AND_METADATA = { ["f:metadata"] = LEAF, ["f:spec"] = LEAF }

-- Fields that a write of the status does not own, for resources where these are more than the spec.
local STATUS_WRITES = {
  ["deployments.apps"] = { ["f:spec"] = LEAF, ["f:metadata"] = { ["f:labels"] = LEAF } },
  ["pods"] = {
    ["f:spec"] = LEAF,
    ["f:metadata"] = { ["f:deletionTimestamp"] = LEAF, ["f:ownerReferences"] = LEAF },
  },
  ["certificatesigningrequests.certificates.k8s.io"] = {
    ["f:spec"] = LEAF, ["f:status"] = { ["f:conditions"] = LEAF },
  },
  ["resourceclaims.resource.k8s.io"] = SPEC_AND_METADATA,
  ["servicecidrs.networking.k8s.io"] = SPEC_AND_METADATA,
  ["volumeattachments.storage.k8s.io"] = SPEC_AND_METADATA,
  ["validatingadmissionpolicies.admissionregistration.k8s.io"] = SPEC_AND_METADATA,
}

local CSR = "certificatesigningrequests.certificates.k8s.io"

-- By resource and other subresource.
local OTHER_WRITES = {
  ["namespaces/finalize"] = STATUS,
  [CSR .. "/approval"] = { ["f:spec"] = LEAF, ["f:status"] = { ["f:certificate"] = LEAF } },
}

-- Whole objects that reset more than their status.
local WHOLE_WRITES = {
  [CSR] = { ["f:spec"] = LEAF, ["f:status"] = LEAF },
}


--- The set of paths that writes of `res`, or of its subresource, do not own.
function M.of(res, subresource)
  local id = res.id
  if not subresource then
    local status = res.subresources and res.subresources.status
    return WHOLE_WRITES[id] or (status and STATUS) or NOTHING
  elseif subresource ~= "status" then
    return OTHER_WRITES[id .. "/" .. subresource] or NOTHING
  elseif not res.builtin then
    return SPEC_AND_METADATA
  end
  return STATUS_WRITES[id] or SPEC
end


return M
