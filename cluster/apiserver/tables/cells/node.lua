--- Cells of a node. Rules: kubernetes/pkg/printers/internalversion/printers.go (printNode).
local age = require "cluster.apiserver.tables.age"
local text = require "cluster.apiserver.tables.text"

local ROLE_PREFIX = "node-role.kubernetes.io/"
local ROLE_LABEL = "kubernetes.io/role"
local READY = { ["True"] = "Ready" }


local function state(obj, status)
  local ready = text.condition(status.conditions, "Ready")
  local word = ready and (READY[ready] or "NotReady") or "Unknown"
  return obj.spec and obj.spec.unschedulable and word .. ",SchedulingDisabled" or word
end


local function roles(labels)
  local set, list = {}, {}
  for key, value in pairs(labels or {}) do
    local role = key:sub(1, #ROLE_PREFIX) == ROLE_PREFIX and key:sub(#ROLE_PREFIX + 1) or key == ROLE_LABEL and value
    if role and role ~= "" and not set[role] then
      set[role] = true
      list[#list + 1] = role
    end
  end
  table.sort(list)
  return text.join(list, "<none>")
end


local function address(status, kind)
  for _, entry in ipairs(status.addresses or {}) do
    if entry.type == kind then
      return entry.address
    end
  end
  return "<none>"
end


local function or_unknown(value)
  return value and value ~= "" and value or "<unknown>"
end


--- @return table cells in the order of kinds.lua
return function(obj, now)
  local status = obj.status or {}
  local info = status.nodeInfo or {}
  local kernel = or_unknown(info.kernelVersion)
  if info.architecture and info.architecture ~= "" then
    kernel = kernel .. " (" .. info.architecture .. ")"
  end
  return {
    obj.metadata.name, state(obj, status), roles(obj.metadata.labels), age.of(obj, now), info.kubeletVersion or "",
    address(status, "InternalIP"), address(status, "ExternalIP"), or_unknown(info.osImage), kernel,
    or_unknown(info.containerRuntimeVersion),
  }
end
