--- Types of built-in kinds with another type embedded in them: its fields stand among their own in JSON, and under its
--- name in the decoder's messages ("spec.volumes.VolumeSource.emptyDir").
---
--- Facts from k8s.io/api/core/v1/types.go.
local M = {}

-- The embedded type, and the fields that are its own, or ("but") those that are not.
local EMBEDDED = {
  Volume = { "VolumeSource", but = "name" },
  PersistentVolumeSpec = {
    "PersistentVolumeSource", but = "accessModes capacity claimRef mountOptions nodeAffinity "
      .. "persistentVolumeReclaimPolicy storageClassName volumeAttributesClassName volumeMode",
  },
  EphemeralContainer = { "EphemeralContainerCommon", but = "targetContainerName" },
  Probe = { "ProbeHandler", only = "exec httpGet tcpSocket grpc" },
}
for _, name in ipairs {
  "SecretProjection", "ConfigMapVolumeSource", "ConfigMapProjection", "ConfigMapKeySelector", "SecretKeySelector",
  "ConfigMapEnvSource", "SecretEnvSource",
} do
  EMBEDDED[name] = { "LocalObjectReference", only = "name" }
end


local function lists(words, name)
  return (" " .. words .. " "):find(" " .. name .. " ", 1, true) ~= nil
end


--- What the decoder calls a field of a type: its name, or after the type that is embedded there.
function M.label(struct, field)
  local embedded = EMBEDDED[struct]
  if not embedded then
    return field
  end
  local inner
  if embedded.only then
    inner = lists(embedded.only, field)
  else
    inner = not lists(embedded.but, field)
  end
  return inner and embedded[1] .. "." .. field or field
end


return M
