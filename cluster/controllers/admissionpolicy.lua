--- ValidatingAdmissionPolicies: checks the expressions of each version of a policy against types, once, and says in its
--- status what it found.
---
--- Rules: kubernetes/pkg/controller/validatingadmissionpolicystatus/controller.go.
local controller = require "cluster.controllers.controller"
local host = require "cluster.host"
local typecheck = require "cluster.apiserver.admission.policies.typecheck"

local M = {}


local function reconcile(api, object)
  local generation = object.metadata.generation or 0
  if generation > ((object.status or {}).observedGeneration or 0) then
    local warnings = typecheck.check(object.spec, api.registry)
    api.apply_status(object, {
      observedGeneration = generation,
      typeChecking = { expressionWarnings = warnings[1] and host.json.array(warnings) or nil },
    })
  end
end


--- Starts the controller.
function M.start(server)
  controller.start(server, {
    name = "validatingadmissionpolicy-status", reconcile = reconcile,
    kind = { "admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy" },
  })
end


return M
