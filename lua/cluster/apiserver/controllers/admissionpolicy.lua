--- ValidatingAdmissionPolicies: notes which version of a policy has been looked at.
---
--- Rules: kubernetes/pkg/controller/validatingadmissionpolicystatus/controller.go.
local runner = require "cluster.apiserver.controllers.runner"

local M = {}


local function reconcile(api, object)
  local generation = object.metadata.generation or 0
  if generation > ((object.status or {}).observedGeneration or 0) then
    api.write_status(object, { observedGeneration = generation, typeChecking = {} })
  end
end


--- Starts the controller.
function M.start(server)
  runner.start(server, {
    name = "validatingadmissionpolicy-status", reconcile = reconcile,
    kind = { "admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy" },
  })
end


return M
