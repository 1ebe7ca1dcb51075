--- Warnings about services that are valid, but probably not as intended.
---
--- Rules: kubernetes/pkg/api/service/warnings.go.
local M = {}


--- Warnings about a service. @return table texts
function M.of(object)
  local warnings, spec = {}, object.spec
  local function add(text)
    warnings[#warnings + 1] = text
  end
  local headless = spec.type == "ClusterIP" and spec.clusterIP == "None"
  local external = spec.externalIPs and #spec.externalIPs > 0
  if headless and spec.loadBalancerIP then
    add "spec.loadBalancerIP is ignored for headless services"
  end
  if headless and external then
    add "spec.externalIPs is ignored for headless services"
  end
  if headless and spec.sessionAffinity ~= "None" then
    add "spec.SessionAffinity is ignored for headless services"
  end
  if external and not headless and spec.type ~= "ExternalName" then
    add "spec.externalIPs is deprecated and may no longer be implemented in some clusters"
  elseif external and spec.type == "ExternalName" then
    add 'spec.externalIPs is ignored when spec.type is "ExternalName"'
  end
  if spec.type ~= "ExternalName" and spec.externalName then
    add 'spec.externalName is ignored when spec.type is not "ExternalName"'
  end
  if spec.trafficDistribution == "PreferClose" then
    add 'spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"'
  end
  return warnings
end


return M
